#!lua flags=no-writes
-- needs: base
-- How many jobs (of a tenant, or of all) of each kind are in each state.

local reply = {}
local flat = redis.call('HGETALL', ns .. (ask.tenant and 'counts:' .. ask.tenant or 'counts'))
for n = 1, #flat, 2 do
  local state, kind = string.match(flat[n], '^(.-)\n(.*)$')
  reply[#reply + 1] = {state, kind, flat[n + 1]}
end
return reply
