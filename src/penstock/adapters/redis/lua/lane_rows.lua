#!lua flags=no-writes
-- needs: base lines
-- Some of the lanes in use, from those last used at `ask.since` on (a lane that is used meanwhile
-- comes again, and none is left out): name, row (names and values in turn), slots taken, jobs in
-- its lines, slots of questions. And since when to go on, or '' at the end.

local CHUNK = 200

local rows, last = {}, ''
local flat = redis.call(
  'ZRANGEBYSCORE', ns .. 'lanes', ask.since, '+inf', 'WITHSCORES', 'LIMIT', 0, CHUNK)
for n = 1, #flat, 2 do rows[#rows + 1], last = lines.told(flat[n]), flat[n + 1] end
return {rows, #rows == CHUNK and last or ''}
