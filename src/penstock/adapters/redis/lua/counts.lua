#!lua flags=no-writes
-- needs: base lines jobs
-- How many jobs (of a tenant, or of all) of each kind are in each state; of all, also when the
-- oldest queued one was enqueued.

local reply = {}
local flat = redis.call('HGETALL', ns .. (ask.tenant and 'counts:' .. ask.tenant or 'counts'))
for n = 1, #flat, 2 do
  local state, kind = string.match(flat[n], '^(.-)\n(.*)$')
  local oldest = ''
  if state == 'queued' and not ask.tenant then
    local seq = redis.call('ZRANGE', ns .. 'queued:' .. kind, 0, 0)[1]
    oldest = exact(jobs.spec(redis.call('HGET', ns .. 'specs', seq)).at)
  end
  reply[#reply + 1] = {state, kind, flat[n + 1], oldest}
end
return reply
