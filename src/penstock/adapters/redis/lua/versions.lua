#!lua flags=no-writes
-- needs: base log
-- The newest version of each log.

local versions = {}
for n, name in ipairs(ask.logs) do versions[n] = redis.call('LLEN', log.key(name[1], name[2])) end
return versions
