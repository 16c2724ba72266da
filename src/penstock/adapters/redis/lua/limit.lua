#!lua flags=allow-oom
-- needs: base lines jobs lane_state usual_amounts amounts learnt limits breaker lanes
-- Give a lane other limits than the configured ones, or those again; 0 when there is no such lane.

local lane = lanes.load(ask.lane)
if not lane then return 0 end
lanes.limit(ask.lane, ask.given)
local changed = lanes.load(ask.lane)
limits.repace(changed, lane_state.pace(lane), now)
lanes.save(changed)
lanes.wake_lane(ask.lane)
return done(1)
