-- Permits asked for inside a job: the twin of penstock/lanes/permit.py, which says more.

local RESERVED_SECONDS = 10
local WAITING_SECONDS = 1
local FULL = 'all its slots are taken'

local permit = {}

local function outage(lane)
  if lane.address and lane.probe_ok == 0 then
    return 'its breaker is open (cannot reach ' .. lane.address .. ')'
  end
  return 'its breaker is open'
end

local function why_not(lanes, held, now, question, booking)
  for _, lane in ipairs(lanes) do
    if lane.blocked_until > now then
      return {lane = lane.name, until_ = lane.blocked_until, why = lane.blocked_why or 'blocked'}
    end
    if not lane_state.may_start(lane, now) then
      -- Without a time the try is under way.
      return {
        lane = lane.name, until_ = lane.retry_at > now and lane.retry_at or nil,
        why = outage(lane), give_up = true}
    end
    if not held[lane.name] and limits.slots_free(lane, now, question) == 0 then
      return {lane = lane.name, why = FULL}
    end
    if lane_state.left_today(lane, now) < 1 then
      return {
        lane = lane.name, until_ = lane_state.day_after(lane, now),
        why = 'its daily limit is used up'}
    end
  end
  local latest = lanes[1]
  if lanes[2] and lanes[2].next_start > latest.next_start then latest = lanes[2] end
  if booking then
    local coming = amounts.room(lanes, booking.amount, now)
    if coming.at > math.max(now, latest.next_start) then
      return {lane = coming.lane, until_ = coming.at, why = coming.why}
    end
  end
  return {lane = latest.name, until_ = latest.next_start, why = 'its rate'}
end

-- No request is started: neither rate nor breaker has a say.
local function slot_only(lanes, now)
  for _, lane in ipairs(lanes) do
    if limits.slots_free(lane, now, false) == 0 then return nil, {lane = lane.name, why = FULL} end
  end
  for _, lane in ipairs(lanes) do lane.in_flight = lane.in_flight + 1 end
  return {start_at = now, void_at = math.huge, trial = false}
end

-- Ask a lane and its parent: {start_at, void_at, timeout, trial}, or {lane, until_, why, give_up}. They
-- are charged for a permit. Or {lane, why, refused}: it is too large. `held` names the lanes whose slot the job that asks has already.
function permit.ask(lanes, request, holder, held, now)
  local lane, names = lanes[1], {}
  if request.slot_only then return slot_only(lanes, now) end
  if request.rate_only then
    held = {}
    for _, one in ipairs(lanes) do held[one.name] = true end
  end
  for name in pairs(held) do names[#names + 1] = name end
  local booking
  if amounts.counted(lanes) then
    booking = amounts.booking(lanes, request.ref, 0, request.amount, request.kind)
    local why = booking.refusal
    if why then return nil, {lane = lane.name, why = why, refused = true} end
  end
  local trial, retry_at = lane.trial, lane.retry_at
  if held[lane.name] and trial == request.job and lane.trial_holder == holder then
    -- The job that makes the try may make all its requests: it is one try to its end.
    lane.trial, lane.retry_at = nil, math.min(retry_at, now)
  end
  local question = request.question
  local slack = request.slack or 0
  local start = limits.grant(
    lanes, 1, now, request.patience, names, request.lead, question, slack, booking)[1]
  lane.trial, lane.retry_at = trial, retry_at
  if not start then
    local busy = why_not(lanes, held, now, question, booking)
    if question and busy.lane == lane.name and busy.why == FULL then
      lane.asked_until = math.max(lane.asked_until, now + WAITING_SECONDS)
    end
    return nil, busy
  end
  if question then lane.asked_until = lane.max_parallel > 1 and now + RESERVED_SECONDS or 0 end
  local trying = lane_state.open(lane) and not held[lane.name]
  if trying then lane.trial, lane.trial_holder = request.ref, holder end
  local tolerance, timeout = booking and amounts.tolerance(lanes) or math.huge, nil
  for _, one in ipairs(lanes) do
    tolerance = math.min(tolerance, one.tolerance)
    if one.timeout then timeout = math.min(timeout or one.timeout, one.timeout) end
  end
  return {start_at = start, void_at = start + slack + tolerance, timeout = timeout, trial = trying}
end

-- Where a slot is to be stored for a permit.
function permit.slots(lanes, request, held)
  local names = {}
  if request.rate_only then return names end
  for _, lane in ipairs(lanes) do
    if not held[lane.name] then names[#names + 1] = lane.name end
  end
  if request.question then names[#names + 1] = lanes[1].name .. lines.QUESTIONS end
  return names
end
