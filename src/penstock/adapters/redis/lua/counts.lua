#!lua flags=no-writes
-- needs: base lines jobs
-- How many jobs of each kind are in each state, and when the oldest queued one was enqueued.

local reply = {}
local flat = redis.call('HGETALL', ns .. 'counts')
for n = 1, #flat, 2 do
  local state, kind = string.match(flat[n], '^(.-)\n(.*)$')
  local oldest = ''
  if state == 'queued' then
    local seq = redis.call('ZRANGE', ns .. 'queued:' .. kind, 0, 0)[1]
    oldest = exact(jobs.spec(redis.call('HGET', ns .. 'specs', seq)).at)
  end
  reply[#reply + 1] = {state, kind, flat[n + 1], oldest}
end
return reply
