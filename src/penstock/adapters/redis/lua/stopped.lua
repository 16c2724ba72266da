#!lua flags=no-writes
-- needs: base lines jobs log stops
-- Whether each log is stopped.

local found = {}
for n, name in ipairs(ask.logs) do found[n] = stops.stopped(name[1], name[2]) and 1 or 0 end
return found
