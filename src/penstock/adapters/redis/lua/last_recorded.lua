#!lua flags=no-writes
-- needs: base records
-- The newest position of each job that is there, after its id.

local found = {}
for _, id in ipairs(ask.ids) do
  local seq = redis.call('ZSCORE', ns .. 'ids', id)
  if seq then
    local last = redis.call('ZREVRANGE', records.order(seq), 0, 0, 'WITHSCORES')[2]
    found[#found + 1] = {id, last or '0'}
  end
end
return found
