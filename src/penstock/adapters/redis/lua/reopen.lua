#!lua flags=allow-oom
-- needs: base lines jobs log stops
-- Let a log take jobs again.

if redis.call('SREM', ns .. 'stopped', pair(ask.tenant, ask.log)) == 1 then
  redis.call('HDEL', ns .. 'whole', pair(ask.tenant, ask.log))
  stops.note(ask.tenant, ask.log, 'resumed', '{}')
end
return done(1)
