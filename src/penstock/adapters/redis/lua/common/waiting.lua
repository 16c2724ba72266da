-- Chooses among the jobs that wait in a lane: the twin of penstock/lanes/waiting.py.

local TRIAL_CHOICE = 40

local line = {LINES_PER_CLAIM = 16, LATER_SECONDS = 1}

-- How many may be taken from the line at most.
function line.room(lanes, wanted, now)
  local most = wanted
  for _, lane in ipairs(lanes) do
    most = math.min(most, lane_state.slots_for_jobs(lane, now))
    if not lane_state.may_start(lane, now) then return 0 end
  end
  return most
end

-- How many of the first in line to choose from.
function line.choice(lane, most) return lane_state.open(lane) and TRIAL_CHOICE or most end

-- Who may start: with an open breaker only one, which has not failed yet if there is one.
function line.chosen(lane, picked)
  if not lane_state.open(lane) then return picked end
  local tried, second = {}, nil
  for _, seq in ipairs(cjson.decode(lane.tried)) do tried[seq] = true end
  for _, one in ipairs(picked) do
    local seq = tonumber(one.row.seq)
    if not tried[seq] then return {one} end
    if seq ~= lane.last_trial and not second then second = one end
  end
  return {second or picked[1]}
end

-- When to look at the line next, and the lane whose slot it waits for; whichever comes first,
-- where there are both. `amount` is what the next job reserves, if that counts.
function line.look_again(lanes, now, amount)
  local at = limits.next_chance(lanes, now, amount)
  for _, lane in ipairs(lanes) do
    if lane_state.slots_for_jobs(lane, now) == 0 or lane.trial ~= nil then return at, lane.name end
  end
  return at
end
