#!lua flags=allow-oom
-- needs: base lines jobs lane_state usual_amounts amounts learnt breaker lanes
-- A process starts: what it needs may be back, so one try is made without waiting in each lane
-- whose breaker is open. And it may have come with new credentials: one more refusal blocks the
-- lane again. Looks at some lanes after the first `ask.skip`; how many to skip next, -1 at the end.

local CHUNK = 50

local names = redis.call('ZRANGE', ns .. 'troubled', ask.skip, ask.skip + CHUNK - 1)
local kept = 0
for _, name in ipairs(names) do
  local lane = lanes.load(name)
  local retry = lane.step > 0 and lane.retry_at > now
  local refused = lane.blocked_why == breaker.CREDENTIALS
  if retry then lane.retry_at = now end
  if refused then
    lane.blocked_until, lane.blocked_why, lane.refusers = 0, nil, breaker.PARDONED
  end
  if retry or refused then
    lanes.save(lane)
    lanes.wake_lane(name)
  end
  if redis.call('ZSCORE', ns .. 'troubled', name) then kept = kept + 1 end
end
return done(#names == CHUNK and ask.skip + kept or -1)
