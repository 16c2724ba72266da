#!lua flags=allow-oom
-- needs: base lines jobs lane_state usual_amounts amounts learnt breaker lanes
-- The lanes in trouble {name, where} that this process is to probe now; nobody else does meanwhile.

local MAX_PROBES = 50

local due = {}
local names = redis.call('ZRANGEBYSCORE', ns .. 'troubled', '-inf', now, 'LIMIT', 0, MAX_PROBES)
for _, name in ipairs(names) do
  local lane = lanes.load(name)
  if lanes.worth_probing(lane) then
    lane.probed_at = now
    due[#due + 1] = {name, lane.health_url or lane.address}
  end
  lanes.save(lane)
end
return done(due)
