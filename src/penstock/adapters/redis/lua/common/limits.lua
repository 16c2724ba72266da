-- How many may start now in a lane, and when: the twin of penstock/lanes/limits.py.

local AHEAD_SECONDS = 0.05

local limits = {}

local function set(names)
  local members = {}
  for _, name in ipairs(names) do members[name] = true end
  return members
end

local function any(lanes, condition)
  for _, lane in ipairs(lanes) do
    if condition(lane) then return true end
  end
  return false
end

-- When all of `lanes` can take one more start, if that is soon enough.
local function next_start(lanes, now, ahead, lead)
  local at = {}
  for n, lane in ipairs(lanes) do
    local pace = lane_state.pace(lane)
    -- To wait for the answer is worth no more than what a start costs that is lost.
    at[n] = pace > 0 and math.max(now + math.min(lead, pace / 2), lane.next_start) or now
  end
  local own, parent = at[1], at[2]
  local start = parent and math.max(own, parent) or own
  if start > now + ahead then return nil end
  -- A start that waits for the lane itself would leave its parent idle until then, for all the
  -- parent's children. So far ahead only the parent's own pace is waited for.
  if parent and own > parent and start > now + AHEAD_SECONDS and lane_state.pace(lanes[2]) > 0 then
    return nil
  end
  if any(lanes, function(lane) return lane_state.left_today(lane, start) < 1 end) then return nil end
  return start
end

local function charge(lane, start, slack)
  local pace, day = lane_state.pace(lane), lane_state.day_of(lane, start)
  if pace > 0 then lane.next_start = start + slack + pace end
  lane.used_today = 1 + (lane.day == day and lane.used_today or 0)
  lane.day = day
end

-- Start times for up to `wanted` requests that every one of `lanes` (a lane and its parent) can
-- take within `ahead` seconds; not before `lead` seconds where starts are spaced. Each may come
-- `slack` seconds later, so the next one does too. The lanes are charged for them; those named by
-- `held` only for the rate, because the slot is held already. A `question` may have the slot that
-- jobs leave to it. What a `booking` reserves is charged for one request: it wants no more.
function limits.grant(lanes, wanted, now, ahead, held, lead, question, slack, booking)
  ahead, held, lead, slack = ahead or AHEAD_SECONDS, set(held or {}), lead or 0, slack or 0
  if any(lanes, function(lane) return not lane_state.may_start(lane, now) end) then return {} end
  local most = wanted
  for _, lane in ipairs(lanes) do
    if not held[lane.name] then most = math.min(most, limits.slots_free(lane, now, question)) end
    if lane_state.open(lane) then most = math.min(most, 1) end -- one try at a time
  end
  local starts = {}
  while #starts < most do
    local start = next_start(lanes, now, ahead, lead)
    if booking and start then
      local first = math.max(start, now + math.min(lead, ahead))
      start = amounts.book(lanes, booking, first, now + ahead, slack)
    end
    if start == nil then break end
    starts[#starts + 1] = start
    for _, lane in ipairs(lanes) do
      charge(lane, start, slack)
      if not held[lane.name] then
        lane.in_flight = lane.in_flight + 1
        if question and lane == lanes[1] then lane.asking = lane.asking + 1 end
      end
    end
  end
  return starts
end

-- Start times of the first of some jobs, of which it is told whether they resume, for as many as
-- `lanes` can take. They have the slots for all. One that resumes was charged when it was started,
-- and takes only its slot again; so does one whose booking is refused.
function limits.starts(lanes, resumes, now, slack, bookings)
  if not bookings and not any(resumes, function(charged) return charged end) then
    return limits.grant(lanes, #resumes, now, nil, nil, nil, false, slack)
  end
  local starts = {}
  for n, charged in ipairs(resumes) do
    local booking = bookings and bookings[n] or nil
    if charged or (booking and booking.refusal) then
      for _, lane in ipairs(lanes) do lane.in_flight = lane.in_flight + 1 end
      starts[n] = now
    else
      starts[n] = limits.grant(lanes, 1, now, nil, nil, nil, false, slack, booking)[1]
      if not starts[n] then break end
    end
  end
  return starts
end

function limits.slots_free(lane, now, question)
  if question then return lane_state.slots_for_questions(lane) end
  return lane_state.slots_for_jobs(lane, now)
end

-- Whether a job has to wait until a slot is given back.
function limits.is_full(lane, now)
  return lane_state.slots_for_jobs(lane, now) == 0 and lane.in_flight > 0
end

-- When `lanes` could grant a job a start, as far as time decides; nil: when a slot is freed or a trial
-- ends. `amount` is what the next job reserves, where any of them counts that.
function limits.next_chance(lanes, now, amount)
  local at = now
  for _, lane in ipairs(lanes) do
    if limits.is_full(lane, now) or lane.trial ~= nil then return nil end
    at = math.max(at, lane.blocked_until, lane.retry_at)
    if lane_state.slots_for_jobs(lane, now) == 0 then at = math.max(at, lane.asked_until) end
    if lane_state.pace(lane) > 0 then at = math.max(at, lane.next_start - AHEAD_SECONDS) end
    if lane_state.left_today(lane, now) < 1 then
      at = math.max(at, lane_state.day_after(lane, now))
    end
  end
  if amount then
    local room = amounts.room(lanes, amount, at).at - AHEAD_SECONDS
    at = math.max(at, math.min(room, now + amounts.pause(lanes)))
  end
  return at
end

-- The lane goes by another pace from now on, counted from its last start. Where that is not known,
-- because it had no pace, somebody may just have started.
function limits.repace(lane, old_pace, now)
  local pace = lane_state.pace(lane)
  if pace == 0 then return end
  local last = old_pace > 0 and lane.next_start - old_pace or now
  lane.next_start = last + pace
end
