#!lua flags=allow-oom
-- needs: base lines jobs lane_state breaker lanes
-- The lanes in trouble {name, where} that this process is to probe now; nobody else does meanwhile.

local due = {}
for _, name in ipairs(redis.call('SMEMBERS', ns .. 'troubled')) do
  local lane = lanes.load(name)
  local where = lane.health_url or lane.address
  if (lane.step > 0 or breaker.suspected(lane, now)) and where
    and lane.probed_at + lane.probe_seconds <= now
  then
    redis.call('HSET', lines.lane_key(name), 'probed_at', now)
    due[#due + 1] = {name, where}
  end
end
return done(due)
