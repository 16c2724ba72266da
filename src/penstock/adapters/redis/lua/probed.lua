#!lua flags=allow-oom
-- needs: base lines jobs log stops lane_state usual_amounts amounts learnt breaker verdict lanes lane_settle
-- What a probe found.

local lane = lanes.load(ask.lane)
if not lane then return 0 end
local retry_at = lane.retry_at
local _, spared = breaker.probed(lane, ask.ok, now)
lane_settle.return_attempts(spared)
lanes.save(lane)
if lane.retry_at < retry_at then lanes.wake_lane(ask.lane) end
return done(1)
