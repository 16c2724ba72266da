#!lua flags=no-writes
-- needs: base lines jobs log tasks
-- Whether each task is stopped.

local found = {}
for n, name in ipairs(ask.tasks) do found[n] = tasks.stopped(name[1], name[2]) and 1 or 0 end
return found
