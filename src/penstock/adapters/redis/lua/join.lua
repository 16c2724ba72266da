#!lua
-- needs: base
-- A new membership: its number.

local number = redis.call('HINCRBY', ns .. 'numbers', 'process', 1)
local lease_until = now + ask.lease_seconds
redis.call(
  'HSET', ns .. 'process:' .. number, 'number', number, 'id', ask.id, 'host', ask.host,
  'pid', ask.pid, 'boot', ask.boot, 'life', ask.life, 'kinds', ask.kinds,
  'max_workers', ask.max_workers, 'status', '{}', 'joined_at', now, 'heartbeat_at', now,
  'lease_until', lease_until, 'trip', 0, 'claimed', '', 'asked', 0, 'inbox', ask.inbox)
redis.call('ZADD', ns .. 'processes', lease_until, number)
return done(number)
