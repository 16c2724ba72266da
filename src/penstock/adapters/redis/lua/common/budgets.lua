-- Budgets: what payers may spend, and the lines of jobs that they pause. The twin of
-- penstock/lanes/budgets.py, but for the calendar: when a period is over, the process that charges
-- says when the next one ends.
--   budgets             set of the payers that have one
--   budget:PAYER        hash: the fields of penstock.model.budget.BudgetState
-- Jobs that a claim has met while a budget of theirs was reached stand in lines of their own, so that
-- others behind them are found. They keep their place: while there is something left to spend, both
-- lines are one.
--   paused              set of the payers that have such lines
--   paused_in:PAYER     set of lane, kind: where
--   paused_by:LANE,KIND  set of payers: whose

local WARNED_AT = 0.8
local LANES_MOST = 64
local LOOK_SECONDS = 60

local budgets = {}
local known = {}

local function key(payer) return ns .. 'budget:' .. payer end

-- Whether there are any, or jobs that one has paused.
function budgets.any() return redis.call('EXISTS', ns .. 'budgets', ns .. 'paused') > 0 end

function budgets.payers(tenant, task)
  if (task or '') == '' then return {'tenant:' .. tenant} end
  local quoted = string.gsub(string.gsub(tenant, '%%', '%%25'), '/', '%%2F')
  return {'tenant:' .. tenant, 'task:' .. quoted .. '/' .. task}
end

-- The budget of a payer, read once; nil if there is none.
function budgets.load(payer)
  if known[payer] == nil then
    local flat = redis.call('HGETALL', key(payer))
    local row = #flat > 0 and {payer = payer} or false
    for n = 1, #flat, 2 do row[flat[n]] = flat[n + 1] end
    if row then
      for _, name in ipairs({
        'tokens_limit', 'cost_limit', 'begins', 'ends', 'tokens', 'cost', 'warned'}) do
        row[name] = tonumber(row[name])
      end
      row.lanes = cjson.decode(row.lanes)
    end
    known[payer] = row
  end
  return known[payer] or nil
end

function budgets.reached(row)
  local tokens, cost = row.tokens_limit, row.cost_limit
  return (tokens and row.tokens >= tokens or cost and row.cost >= cost) and true or false
end

function budgets.closed(row) return budgets.reached(row) and now < row.ends end

local function share(row)
  local most = 0
  for _, part in ipairs({{row.tokens, row.tokens_limit}, {row.cost, row.cost_limit}}) do
    if part[2] then most = math.max(most, part[2] == 0 and 1 or part[1] / part[2]) end
  end
  return most
end

function budgets.warns(row)
  local warning = budgets.reached(row) and 2 or share(row) >= WARNED_AT and 1 or 0
  if warning <= row.warned then return false end
  row.warned = warning
  return true
end

local function knows(row, lane)
  for _, name in ipairs(row.lanes) do
    if name == lane then return true end
  end
  return false
end

function budgets.spend(row, at, tokens, cost, lane)
  if at < row.begins then return end
  row.tokens = math.max(0, row.tokens + tokens)
  row.cost = math.max(0, row.cost + cost)
  if lane ~= '' and #row.lanes < LANES_MOST and not knows(row, lane) then
    table.insert(row.lanes, lane)
  end
end

-- Of the budgets of these payers that nothing may be begun on the one that lasts longest.
function budgets.first_closed(payers)
  local found
  for _, payer in ipairs(payers) do
    local row = budgets.load(payer)
    if row and budgets.closed(row) and (not found or row.ends > found.ends) then found = row end
  end
  return found
end

function budgets.save(row)
  redis.call(
    'HSET', key(row.payer), 'tokens', string.format('%.0f', row.tokens),
    'cost', string.format('%.0f', row.cost), 'warned', row.warned,
    'lanes', #row.lanes > 0 and cjson.encode(row.lanes) or '[]')
end

-- As a process reads it: names and values in turn.
function budgets.told(payer) return {payer, redis.call('HGETALL', key(payer))} end

-- This payer may spend again, or nobody asks any more: what waits for that is looked at now.
function budgets.wake(payer)
  for _, member in ipairs(redis.call('SMEMBERS', ns .. 'paused_in:' .. payer)) do
    local lane, kind = string.match(member, '^(.-)\n(.*)$')
    lines.join(lane, kind, now)
    lines.look_at(lane, kind, 0)
  end
  jobs.expect_now('budget ' .. payer)
  wake('ready')
end

local function pause(one, payer)
  redis.call('ZREM', one.line, one.place)
  jobs.save(one.row, {paused = payer})
  redis.call('ZADD', jobs.line(one.row), 0, one.row.place)
  redis.call('SADD', ns .. 'paused', payer)
  redis.call('SADD', ns .. 'paused_in:' .. payer, pair(one.row.lane, one.kind))
  redis.call('SADD', ns .. 'paused_by:' .. pair(one.row.lane, one.kind), payer)
end

-- Nobody is paused there any more.
local function forget(payer, lane, kind)
  redis.call('SREM', ns .. 'paused_by:' .. pair(lane, kind), payer)
  redis.call('SREM', ns .. 'paused_in:' .. payer, pair(lane, kind))
  if redis.call('EXISTS', ns .. 'paused_in:' .. payer) == 0 then
    redis.call('SREM', ns .. 'paused', payer)
  end
end

budgets.ROUNDS = 4
budgets.PAUSE_MOST = 250
budgets.LINES_MOST = 50

-- The lines of jobs that are paused in a lane and may run, and until when the next of the others stays
-- closed.
local function paused_lines(name, kinds)
  local open, until_ = {}, nil
  for _, kind in ipairs(kinds) do
    for _, payer in ipairs(redis.call('SMEMBERS', ns .. 'paused_by:' .. pair(name, kind))) do
      local prefix = 'paused:' .. payer .. '\n'
      local lane_kind = pair(name, kind)
      local row = budgets.load(payer)
      if redis.call(
        'EXISTS', ns .. prefix .. 'line:' .. lane_kind, ns .. prefix .. 'alone:' .. lane_kind) == 0
      then
        forget(payer, name, kind)
      elseif row and budgets.closed(row) then
        until_ = math.min(until_ or row.ends, row.ends)
      elseif #open < budgets.LINES_MOST then
        open[#open + 1] = {prefix = prefix, kind = kind}
      end
    end
  end
  return open, until_
end

-- The budget that pauses a job in these lanes.
local function paused_by(one, some, counts)
  for _, payer in ipairs(budgets.payers(one.row.tenant, one.row.log)) do
    local row = budgets.load(payer)
    if row and budgets.closed(row) then
      if counts then return row end
      for _, lane in ipairs(some) do
        if knows(row, lane.name) then return row end
      end
    end
  end
end

-- The first in the lines of a lane whose payers may spend, and if there is nobody when to look again.
-- The others are paused: a claim that has met them once finds those behind them. `first` picks.
function budgets.choose(some, kinds, most, crashed, counts, first)
  local name, picked = some[1].name, {}
  local open, until_ = paused_lines(name, kinds)
  local wanted, left = most, false
  for _ = 1, budgets.ROUNDS do
    picked, left = {}, false
    for _, one in ipairs(first('', kinds, wanted)) do picked[#picked + 1] = one end
    for _, line in ipairs(open) do
      for _, one in ipairs(first(line.prefix, {line.kind}, wanted)) do picked[#picked + 1] = one end
    end
    local kept = {}
    for _, one in ipairs(picked) do
      local row = paused_by(one, some, counts)
      if row then
        pause(one, row.payer)
        left, until_ = true, math.min(until_ or row.ends, row.ends)
      else
        kept[#kept + 1] = one
      end
    end
    picked = kept
    left = left and #picked < most
    if not left then break end
    wanted = budgets.PAUSE_MOST
  end
  table.sort(picked, function(a, b)
    local first_alone, second_alone = jobs.crashed(a.row), jobs.crashed(b.row)
    if first_alone ~= second_alone then return first_alone end
    return a.place < b.place
  end)
  local chosen, alone = {}, false
  for _, one in ipairs(picked) do
    if not jobs.crashed(one.row) then
      if #chosen < most + (alone and 1 or 0) then chosen[#chosen + 1] = one end
    elseif crashed and not alone then
      alone, chosen[#chosen + 1] = true, one
    end
  end
  if left then return chosen, now end
  return chosen, until_ and math.min(until_, now + LOOK_SECONDS)
end
