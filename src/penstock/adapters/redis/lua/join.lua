#!lua
-- needs: base lines jobs lane_state breaker lanes
-- A new membership: its number.

local number = redis.call('HINCRBY', ns .. 'numbers', 'process', 1)
local lease_until = now + ask.lease_seconds
redis.call(
  'HSET', ns .. 'process:' .. number, 'number', number, 'id', ask.id, 'host', ask.host,
  'pid', ask.pid, 'boot', ask.boot, 'life', ask.life, 'kinds', ask.kinds,
  'max_workers', ask.max_workers, 'status', '{}', 'joined_at', now, 'heartbeat_at', now,
  'lease_until', lease_until, 'trip', 0, 'claimed', '')
redis.call('ZADD', ns .. 'processes', lease_until, number)

-- What it needs may be back, so one try is made in each lane that waits for one; and it may have
-- come with new credentials: one more refusal blocks the lane again.
for _, name in ipairs(redis.call('SMEMBERS', ns .. 'troubled')) do
  local lane = lanes.load(name)
  if lane.step > 0 and lane.retry_at > now then
    lane.retry_at = now
    lanes.save(lane)
    lanes.wake_lane(name)
  end
  if lane.blocked_why == breaker.CREDENTIALS then
    lane.blocked_until, lane.blocked_why, lane.refusers = 0, nil, breaker.PARDONED
    lanes.save(lane)
    lanes.wake_lane(name)
  end
end
return done(number)
