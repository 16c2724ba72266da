#!lua flags=allow-oom
-- needs: base lines jobs log stops
-- Let a log take no more jobs, and cancel those of it that are not finished, or, without
-- `running`, not begun. With `whole`, running ones may finish with their children. Returns how many
-- were cancelled, and how many go on.

local name = pair(ask.tenant, ask.log)
local closed = redis.call('SADD', ns .. 'stopped', name) == 1
if not ask.whole then
  redis.call('HDEL', ns .. 'whole', name)
elseif closed then
  redis.call('HSET', ns .. 'whole', name, now_text)
end
local cancelled, going_on = 0, 0
for _, seq in ipairs(redis.call('ZRANGE', ns .. 'log_jobs:' .. name, 0, -1)) do
  local state = redis.call('HGET', jobs.key(seq), 'state') or 'queued'
  if state == 'queued' or state == 'running' then
    local row = jobs.load(seq)
    if ask.running or (state == 'queued' and stops.refuses(row)) then
      jobs.cancel(row)
      log.append(row, 'cancelled', '{}')
      cancelled = cancelled + 1
    else
      going_on = going_on + 1
    end
  end
end
if closed or cancelled > 0 then
  stops.note(ask.tenant, ask.log, 'stopped', string.format(
    '{"cancelled":%d,"running":%d}', cancelled, going_on))
end
return done({cancelled, going_on})
