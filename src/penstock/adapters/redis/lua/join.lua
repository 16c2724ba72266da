#!lua
-- needs: base lines
-- A new membership: its number. Lines of its kinds that wait for a slot are looked at again: slots may
-- have been freed while nobody was there to look.

local number = redis.call('HINCRBY', ns .. 'numbers', 'process', 1)
local lease_until = now + ask.lease_seconds
redis.call(
  'HSET', ns .. 'process:' .. number, 'number', number, 'id', ask.id, 'host', ask.host,
  'pid', ask.pid, 'boot', ask.boot, 'life', ask.life, 'kinds', ask.kinds,
  'max_workers', ask.max_workers, 'status', '{}', 'joined_at', now, 'heartbeat_at', now,
  'lease_until', lease_until, 'trip', 0, 'claimed', '', 'asked', 0)
redis.call('ZADD', ns .. 'processes', lease_until, number)
for _, kind in ipairs(cjson.decode(ask.kinds)) do
  for _, lane in ipairs(redis.call('HKEYS', ns .. 'waits:' .. kind)) do lines.look_at(lane, kind, 0) end
end
return done(number)
