#!lua flags=allow-oom
-- needs: base lines jobs log tasks
-- Let a task take jobs again.

if redis.call('SREM', ns .. 'stopped', pair(ask.tenant, ask.task)) == 1 then
  redis.call('HDEL', ns .. 'whole', pair(ask.tenant, ask.task))
  tasks.note(ask.tenant, ask.task, 'resumed', '{}')
end
return done(1)
