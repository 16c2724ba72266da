#!lua flags=allow-oom
-- needs: base lines jobs log tasks
-- Let a task take no more jobs, and cancel those of it that are not finished, or, without
-- `running`, not begun. With `whole`, running ones may finish with their children. Returns how many
-- were cancelled, and how many go on.

local name = pair(ask.tenant, ask.task)
local closed = redis.call('SADD', ns .. 'stopped', name) == 1
if not ask.whole then
  redis.call('HDEL', ns .. 'whole', name)
elseif closed then
  redis.call('HSET', ns .. 'whole', name, now_text)
end
local cancelled, going_on = 0, 0
for _, seq in ipairs(redis.call('ZRANGE', ns .. 'task:' .. name, 0, -1)) do
  local state = redis.call('HGET', jobs.key(seq), 'state') or 'queued'
  if state == 'queued' or state == 'running' then
    local row = jobs.load(seq)
    if ask.running or (state == 'queued' and tasks.refuses(row)) then
      jobs.cancel(row)
      log.append(row, 'cancelled', '{}')
      cancelled = cancelled + 1
    else
      going_on = going_on + 1
    end
  end
end
if closed or cancelled > 0 then
  tasks.note(ask.tenant, ask.task, 'stopped', string.format(
    '{"cancelled":%d,"running":%d}', cancelled, going_on))
end
return done({cancelled, going_on})
