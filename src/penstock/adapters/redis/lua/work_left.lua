#!lua flags=no-writes
-- needs: base lines jobs
-- Whether any job (of these kinds) is queued, running, or still being stopped.

local kinds
if ask.kinds then
  kinds = {}
  for _, kind in ipairs(ask.kinds) do kinds[kind] = true end
end
for _, field in ipairs(redis.call('HKEYS', ns .. 'counts')) do
  local state, kind = string.match(field, '^(.-)\n(.*)$')
  if (state == 'queued' or state == 'running') and (not kinds or kinds[kind]) then return 1 end
end
for _, number in ipairs(redis.call('ZRANGE', ns .. 'processes', 0, -1)) do
  for _, seq in ipairs(redis.call('SMEMBERS', ns .. 'stopping:' .. number)) do
    if not kinds or kinds[jobs.load(seq).kind] then return 1 end
  end
end
return 0
