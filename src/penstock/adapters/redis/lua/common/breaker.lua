-- What a lane learns from how requests end: the twin of penstock/lanes/breaker.py, which says
-- more. A lesson is whose fault it was ('lane' or 'job') and the earlier failures, {job, token of
-- the last, how many}, that turn out to be the lane's too. `ask.jitter` is a random number from 0.8
-- to 1.

local RATE_LIMITED_SECONDS = 5
local SLOWEST = 64
local PRAISE = 20
local REFUSALS = 3
local SUSPICION_SECONDS = 300
local DAILY_RESET_SECONDS = 3600
local REMEMBERED = 30

local breaker = {
  PARDONED = '[[0,0],[-1,0]]',
  CREDENTIALS = 'credentials',
  FOR_EVER = 1e12,
}

-- Lists are kept as JSON; an empty one would be taken for an object.
local function as_json(list) return #list > 0 and cjson.encode(list) or '[]' end

local function contains(list, value)
  for _, member in ipairs(list) do
    if member == value then return true end
  end
  return false
end

-- Whether the clock was set back since the lane was last changed. Then its times are as far ahead
-- of now as they were of then.
function breaker.set_back(lane, now)
  local ahead = lane.touched_at - now
  if ahead <= 0 then return false end
  lane.next_start = lane.next_start - ahead
  lane.retry_at = lane.retry_at - ahead
  lane.suspect_at = lane.suspect_at - ahead
  lane.asked_until = lane.asked_until - ahead
  if lane.blocked_until < breaker.FOR_EVER then lane.blocked_until = lane.blocked_until - ahead end
  lane.day = math.min(lane.day, lane_state.day_of(lane, now) + 1)
  if lane.used then amounts.set_back(lane, now) end
  if lane.learnt then learnt.set_back(lane, ahead, now) end
  lane.touched_at = now
  return true
end

-- A bounded list of jobs, as the row stores it.
local function added(jobs_text, more)
  local known = {}
  for _, job in ipairs(cjson.decode(jobs_text)) do
    if not contains(more, job) then known[#known + 1] = job end
  end
  for _, job in ipairs(more) do known[#known + 1] = job end
  while #known > REMEMBERED do table.remove(known, 1) end
  return as_json(known)
end

local function climb(lane, now)
  local wait = math.min(lane.breaker_cap, lane.breaker_first * 2 ^ math.min(lane.step, 60))
  lane.step = lane.step + 1
  if lane.step > 1 then lane.doubted = '[]' end -- an outage after all
  lane.retry_at = now + wait * ask.jitter
end

-- Open the breaker; the job that was under suspicion is not at fault.
local function open(lane, last, now)
  local spared = {{lane.suspect, lane.suspect_token, math.max(1, lane.suspect_failures)}}
  lane.tried = added(lane.tried, {lane.suspect})
  lane.suspect, lane.suspect_failures, lane.last_trial = nil, 0, last
  climb(lane, now)
  return spared
end

function breaker.succeeded(lane)
  -- The very first try succeeded: it was no outage, those that failed are at fault.
  if lane.step == 1 then lane.doubted = added(lane.doubted, cjson.decode(lane.tried)) end
  lane.step, lane.retry_at, lane.trial, lane.last_trial = 0, 0, nil, nil
  lane.trial_holder, lane.tried = nil, '[]'
  lane.suspect, lane.suspect_failures, lane.probe_ok = nil, 0, nil
  lane.refusers = '[]'
  if lane.slowdown > 1 or lane.limited > 0 then
    lane.praised = lane.praised + 1
    if lane.praised >= PRAISE then
      lane.slowdown, lane.praised, lane.limited = math.max(1, lane.slowdown / 2), 0, 0
    end
  end
end

-- Whether one more failure makes an outage of what one job saw.
function breaker.suspected(lane, now)
  return lane.suspect ~= nil and lane.suspect_at + SUSPICION_SECONDS > now
end

-- A connection error, time-out or 5xx.
function breaker.unavailable(lane, job, token, now)
  if lane_state.open(lane) then
    lane.tried = added(lane.tried, {job})
    if job == lane.trial then
      climb(lane, now)
      lane.trial, lane.trial_holder, lane.last_trial = nil, nil, job
    end
    return 'lane', {}
  end
  if contains(cjson.decode(lane.doubted), job) then return 'job', {} end
  if not breaker.suspected(lane, now) then
    lane.suspect, lane.suspect_token, lane.suspect_failures = nil, 0, 0
  end
  if lane.suspect == nil or lane.suspect == job then
    -- A run may fail in several requests.
    if lane.suspect == nil or lane.suspect_token ~= token then
      lane.suspect_failures = lane.suspect_failures + 1
    end
    lane.suspect, lane.suspect_token, lane.suspect_at = job, token, now
    return 'job', {}
  end
  lane.tried = added(lane.tried, {job})
  return 'lane', open(lane, job, now)
end

-- What a probe found.
function breaker.probed(lane, ok, now)
  local spared = {}
  if not ok and not lane_state.open(lane) and lane.suspect ~= nil then
    spared = open(lane, lane.suspect, now)
  end
  if ok and lane_state.open(lane) and lane.probe_ok == 0 then
    lane.retry_at = math.min(lane.retry_at, now)
  end
  lane.probe_ok = ok and 1 or 0
  return 'lane', spared
end

-- The request ended without telling anything (cancelled, released, its process died).
function breaker.abandoned(lane, job)
  if lane.trial == job then lane.trial, lane.trial_holder = nil, nil end
end

-- A 429: the lane pauses for everybody, and goes slower if it happens again.
function breaker.rate_limited(lane, job, retry_after, resets_after, now, gives_way)
  breaker.abandoned(lane, job)
  -- Requests that were under way together are told the same thing; that is no repetition.
  local again = lane.blocked_until <= now
  again = again and not gives_way
  if again then lane.limited = lane.limited + 1 end
  lane.praised = 0
  if lane.limited > 1 and again then lane.slowdown = math.min(SLOWEST, lane.slowdown * 2) end
  local pause = retry_after or resets_after
    or (gives_way and 0 or math.max(RATE_LIMITED_SECONDS, lane.spacing))
  if pause > 0 and now + pause > lane.blocked_until then
    lane.blocked_until, lane.blocked_why = now + pause, 'rate limited'
  end
  if lane.per_day ~= nil and resets_after and resets_after > DAILY_RESET_SECONDS then
    local used_today = lane.day == lane_state.day_of(lane, now) and lane.used_today or 0
    lane.day_offset = (now + resets_after) % DAY
    lane.day, lane.used_today = lane_state.day_of(lane, now), used_today
  end
  return 'lane', {}
end

-- A 401 or 403. Three jobs in a row mean the credentials.
function breaker.refused(lane, job, token)
  if lane.credentials == 0 then
    breaker.succeeded(lane) -- it was answered
    return 'job', {}
  end
  breaker.abandoned(lane, job)
  if lane.blocked_why == breaker.CREDENTIALS and lane.blocked_until == breaker.FOR_EVER then
    return 'lane', {}
  end
  local refusals, others, place = {}, {}, {}
  for _, refusal in ipairs(cjson.decode(lane.refusers)) do
    local seq, of = refusal[1], refusal[2]
    if seq ~= job or of ~= token then refusals[#refusals + 1] = {seq, of} end
    if seq ~= job then
      place[seq] = place[seq] or #others + 1
      local before = others[place[seq]]
      others[place[seq]] = {seq, of, before and before[3] + 1 or 1}
    end
  end
  if #others + 1 < REFUSALS then
    refusals[#refusals + 1] = {job, token}
    lane.refusers = as_json(refusals)
    return 'job', {}
  end
  lane.blocked_until, lane.blocked_why = breaker.FOR_EVER, breaker.CREDENTIALS
  lane.refusers = '[]'
  return 'lane', others
end
