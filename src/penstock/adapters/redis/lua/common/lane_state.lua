-- What all processes know of a lane: see penstock/lanes/state.py, of which this is the twin; a
-- test compares them. A lane is a table with the fields of LaneState; none is nil.

local DAY = 86400
local SLOWED_SPACING = 0.02

local lane_state = {}

-- Seconds between starts now. A lane without a rate gets one when it has to slow down.
function lane_state.pace(lane)
  if lane.slowdown == 1 then return lane.spacing end
  return (lane.spacing > 0 and lane.spacing or SLOWED_SPACING) * lane.slowdown
end

function lane_state.open(lane) return lane.step > 0 end

function lane_state.free_slots(lane) return math.max(0, lane.max_parallel - lane.in_flight) end

-- Free slots, without the one that jobs leave to questions.
function lane_state.slots_for_jobs(lane, now)
  local free = lane_state.free_slots(lane)
  if lane.asked_until > now then
    free = math.min(free, lane.max_parallel - 1 - (lane.in_flight - lane.asking))
  end
  return math.max(0, free)
end

-- Free slots, without the last one for jobs where there are several.
function lane_state.slots_for_questions(lane)
  local most = math.max(1, lane.max_parallel - 1) - lane.asking
  return math.max(0, math.min(lane_state.free_slots(lane), most))
end

-- Whether nothing but rate and slots can keep a request from starting.
function lane_state.may_start(lane, now)
  if lane.blocked_until > now then return false end
  return not lane_state.open(lane) or (lane.trial == nil and lane.retry_at <= now)
end

-- The number of the day, as the provider counts, that `at` is in.
function lane_state.day_of(lane, at) return math.floor((at - lane.day_offset) / DAY) end

-- When the day that `at` is in ends.
function lane_state.day_after(lane, at)
  return (lane_state.day_of(lane, at) + 1) * DAY + lane.day_offset
end

-- Requests left of the daily limit of the day that `now` is in.
function lane_state.left_today(lane, now)
  if lane.per_day == nil then return math.huge end
  local today = lane_state.day_of(lane, now)
  if today < lane.day then return 0 end
  return lane.per_day - (lane.day == today and lane.used_today or 0)
end
