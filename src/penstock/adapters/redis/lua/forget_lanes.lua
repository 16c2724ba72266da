#!lua flags=allow-oom
-- needs: base lines jobs lane_state usual_amounts amounts learnt breaker lanes
-- Delete lanes nobody uses, in no trouble and as configured: they are made again when somebody does. Looks at some
-- after the first `ask.skip`; returns how many to skip next, or -1 at the end.

local CHUNK = 100
local IDLE_SECONDS = 3600
local LONG_IDLE_SECONDS = 3 * 86400 -- where amounts are counted, or something was learnt

local idle = now - IDLE_SECONDS
-- A provider's day may begin when UTC's is nearly over: hence yesterday.
local yesterday = math.floor(now / 86400) - 1

local function is_idle(lane)
  return lane.step == 0 and lane.suspect_at < idle and lane.slowdown == 1
    and lane.blocked_until < now and (not lane.per_day or lane.day < yesterday)
    and lane.in_flight == 0 and not lane.limits
    and (not (lane.used or lane.learnt) or lane.touched_at < now - LONG_IDLE_SECONDS)
    and redis.call(
      'EXISTS', ns .. 'kinds:' .. lane.name, ns .. 'family:' .. lane.name,
      ns .. 'expecting:' .. lane.name) == 0
end

local names = redis.call(
  'ZRANGEBYSCORE', ns .. 'lanes', '-inf', '(' .. exact(idle), 'LIMIT', ask.skip, CHUNK)
local kept = 0
for _, name in ipairs(names) do
  local lane = lanes.load(name)
  if is_idle(lane) then
    redis.call('DEL', lines.lane_key(name), ns .. 'turns:' .. name)
    redis.call('ZREM', ns .. 'lanes', name)
    redis.call('ZREM', ns .. 'troubled', name)
    if lane.parent then redis.call('SREM', ns .. 'family:' .. lane.parent, name) end
  else
    kept = kept + 1
  end
end
return done(#names == CHUNK and ask.skip + kept or -1)
