#!lua flags=no-writes
-- needs: base
-- Which of these ids need no more waiting: finished, or gone.

local over = {}
for _, id in ipairs(ask.ids) do
  local seq = redis.call('ZSCORE', ns .. 'ids', id)
  local state = seq and (redis.call('HGET', ns .. 'job:' .. seq, 'state') or 'queued')
  if state ~= 'queued' and state ~= 'running' then over[#over + 1] = id end
end
return over
