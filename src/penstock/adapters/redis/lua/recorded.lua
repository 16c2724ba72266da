#!lua flags=no-writes
-- needs: base records
-- What a job has recorded after a position, as position, key and row. Only events (their name is
-- empty) with what they tell: results may be large.

local seq = redis.call('ZSCORE', ns .. 'ids', ask.id)
if not seq then return {} end
local flat = redis.call('ZRANGEBYSCORE', records.order(seq), '(' .. exact(ask.after), '+inf',
  'WITHSCORES', 'LIMIT', 0, ask.limit)
local found = {}
for n = 1, #flat, 2 do
  local row = redis.call('HGET', ns .. 'steps:' .. seq, flat[n])
  if string.sub(row, 1, 4) ~= '["",' then row = string.match(row, '^[^\n]*') end
  found[#found + 1] = {flat[n + 1], flat[n], row}
end
return found
