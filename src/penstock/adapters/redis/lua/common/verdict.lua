-- What a lane makes of how requests end, and what that makes of the jobs' settlements: the twin of
-- penstock/lanes/verdict.py.

local MAX_SECONDS = 300

local verdict = {}

-- The lane a settlement tells of; '' for none.
function verdict.lane_of(s) return s.report and s.report.lane or s.lane or '' end

local lessons = {
  success = function(lane)
    breaker.succeeded(lane)
    return 'job', {}
  end,
  unavailable = function(lane, job, token, _, at)
    return breaker.unavailable(lane, job, token, at)
  end,
  ['rate limited'] = function(lane, job, _, report, at)
    local gives_way = lane.auto ~= nil and learnt.gives_way(lane)
    return breaker.rate_limited(
      lane, job, report.retry_after, report.resets_after, at, gives_way)
  end,
  refused = function(lane, job, token) return breaker.refused(lane, job, token) end,
}

-- Apply what request `ref` of `job` tells of a lane: whose fault it was, earlier failures that are
-- spared, and whether the breaker has closed.
function verdict.learn(lane, holder, ref, job, token, report, at)
  local was_open = lane_state.open(lane)
  local trying = lane.trial == ref and lane.trial_holder == holder
  if trying then lane.trial = job end
  local fault, spared = 'job', {}
  if report then
    fault, spared = lessons[report.news](lane, job, token, report, at)
    lane.address = report.address or lane.address
  elseif trying then
    -- A request that tells nothing ends the try only if it was the try itself.
    breaker.abandoned(lane, job)
  end
  return fault, spared, was_open and not lane_state.open(lane)
end

-- Let a lane, and its parent, learn how many requests at a time they take.
function verdict.teach(some, report, at)
  for _, lane in ipairs(some) do learnt.hear(lane, report, at) end
end

-- Whose a failure is that the lane has learnt of already, when the permit came back.
function verdict.fault_of_told(lane, report)
  if report.news == 'rate limited' then return 'lane' end
  if report.news == 'refused' then
    return lane.blocked_why == breaker.CREDENTIALS and 'lane' or 'job'
  end
  return report.news == 'unavailable' and lane_state.open(lane) and 'lane' or 'job'
end

-- Where the failure turns out to be the lane's, the settlement becomes a hand-back; whether so.
function verdict.give(s, lane, fault, at)
  local down = s.report and s.report.news == 'unavailable'
  local failure = s.outcome == 'retry' or s.outcome == 'failed'
  if not failure or not (fault == 'lane' or (down and lane_state.open(lane))) then return false end
  s.outcome, s.run_at, s.waits_lane = 'handed back', nil, nil
  if lane.name ~= (s.lane or '') then
    s.run_at = math.min(math.max(lane.retry_at, lane.blocked_until, at), at + MAX_SECONDS)
    s.waits_lane = lane.name
  end
  return true
end
