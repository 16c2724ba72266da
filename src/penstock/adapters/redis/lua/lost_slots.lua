#!lua flags=allow-oom
-- needs: base lines jobs lane_state usual_amounts amounts learnt breaker lanes
-- Every slot belongs to a live membership, and a job's to its lease. This must never find one that
-- does not; if it does, the lane must not stay short of it. Looks at some lanes, from those last
-- used at `ask.since` on: {lane, holder, ref} of what was freed, and since when to go on.

local CHUNK = 100

local function is_held(holder, ref)
  if redis.call('EXISTS', ns .. 'process:' .. holder) == 0 then return false end
  return tonumber(ref) < 0 or redis.call('HGET', jobs.key(ref), 'holder') == holder
end

local freed, last = {}, ''
local flat = redis.call(
  'ZRANGEBYSCORE', ns .. 'lanes', ask.since, '+inf', 'WITHSCORES', 'LIMIT', 0, CHUNK)
for n = 1, #flat, 2 do
  local name = flat[n]
  last = flat[n + 1]
  for _, slot in ipairs(redis.call('SMEMBERS', ns .. 'slots:' .. name)) do
    local holder, ref = string.match(slot, '^(%S+) (%S+)$')
    if not is_held(holder, ref) then
      redis.call('SREM', ns .. 'slots:' .. name, slot)
      redis.call('HDEL', ns .. 'slotted:' .. holder, ref)
      freed[#freed + 1] = {name, holder, ref}
      lanes.wake_waiting(name, 1)
    end
  end
end
lanes.announce()
return done({freed, #flat == 2 * CHUNK and last or ''})
