#!lua flags=allow-oom
-- needs: base lines jobs lane_state usual_amounts amounts learnt breaker lanes
-- Pause, resume or reset a lane; 0 when there is no such lane. The twin of `control` in
-- penstock/lanes/view.py.

local lane = lanes.load(ask.lane)
if not lane then return 0 end
if ask.what == 'pause' then
  lane.blocked_until, lane.blocked_why = breaker.FOR_EVER, 'paused'
else
  lane.blocked_until, lane.blocked_why, lane.refusers = 0, nil, '[]'
end
if ask.what == 'reset' then
  breaker.succeeded(lane)
  lane.slowdown, lane.limited, lane.next_start = 1, 0, 0
  lane.day, lane.used_today, lane.day_offset = 0, 0, 0
  lane.used = lane.used and amounts.NONE
  lane.learnt, lane.learnt_parallel = nil, nil
end
lanes.save(lane)
lanes.wake_lane(ask.lane)
return done(1)
