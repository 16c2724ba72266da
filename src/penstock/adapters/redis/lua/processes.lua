#!lua flags=no-writes
-- needs: base
-- The worker processes: names and values of each row in turn.

local rows = {}
for _, number in ipairs(redis.call('ZRANGE', ns .. 'processes', 0, -1)) do
  rows[#rows + 1] = redis.call('HGETALL', ns .. 'process:' .. number)
end
return rows
