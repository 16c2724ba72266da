#!lua flags=no-writes
-- needs: base lines
-- The lanes in use: name, row (names and values in turn), slots taken, jobs in its lines.

local rows = {}
for _, name in ipairs(redis.call('ZRANGE', ns .. 'lanes', 0, -1)) do
  rows[#rows + 1] = lines.told(name)
end
return rows
