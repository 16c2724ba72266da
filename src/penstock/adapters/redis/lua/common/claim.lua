-- Claiming: what may run now, in order, leased in the same trip.

local STAGE_LIMIT = 200
local ADOPT_LIMIT = 200

local claim = {}

local function due(index, limit)
  return redis.call('ZRANGEBYSCORE', ns .. index, '-inf', now, 'LIMIT', 0, limit)
end

-- What a queued job did at its deadline.
local function meanwhile(row)
  local wait = redis.call('ZSCORE', ns .. 'scheduled', row.seq) and row.waits_lane or ''
  local signal = string.match(wait, '^signal\n(.*)$')
  if signal then return "while it waited for the signal '" .. signal .. "'" end
  return wait == 'sleep\n' and 'while it slept' or 'before it could start'
end

-- Queued jobs whose deadline has passed fail.
function claim.fail_overdue()
  local seqs = due('deadlines', STAGE_LIMIT)
  for _, seq in ipairs(seqs) do
    local row = jobs.load(seq)
    local overdue = cjson.encode({
      type = 'DeadlineExceeded', message = 'its deadline passed ' .. meanwhile(row), retryable = false})
    jobs.unqueue(row)
    local record = '{"attempt":null,"outcome":"failed","finished_at":' .. exact(now)
      .. ',"error":' .. overdue .. '}'
    jobs.fail(row, 'DeadlineExceeded', overdue, record)
    log.append(row, 'failed', '{"error":' .. overdue .. '}')
    wake('finished')
  end
end

-- Scheduled jobs whose time has come join the line.
local function stage()
  for _, seq in ipairs(due('scheduled', STAGE_LIMIT)) do
    local row = jobs.load(seq)
    jobs.unschedule(seq)
    turns.place(row, row.lane, turns.band(row))
  end
end

-- Fill in a job that was enqueued where its kind was unknown, and give it a place in its lane.
function claim.adopt(row, lane, timeout, max_retries)
  jobs.step_aside(row)
  local filled = {}
  if not row.timeout then filled.timeout = timeout end
  if not row.max_retries then filled.max_retries = max_retries end
  if next(filled) then jobs.save(row, filled) end
  turns.place(row, lane, turns.band(row))
end

-- Jobs of these kinds whose lane is not known yet. A kind without lanes is adopted here; for the
-- others only the process that claims can tell: {seq, kind, payload} of each, for it to say.
local function unknown(want)
  local asked = {}
  for _, kind in ipairs(want.names) do
    local known = want.kinds[kind]
    for _, place in ipairs(redis.call('ZRANGE', ns .. 'line:' .. pair('?', kind), 0, ADOPT_LIMIT - 1)) do
      local seq = jobs.seq(place)
      if known.in_lanes then
        asked[#asked + 1] = {seq, kind, redis.call('HGET', ns .. 'payloads', seq)}
      else
        claim.adopt(jobs.load(seq), '', known.timeout, known.max_retries)
      end
    end
  end
  return asked
end

-- Whether jobs of these kinds wait for somebody to say in which lane they belong.
function claim.any_unknown(want)
  for _, kind in ipairs(want.names) do
    if redis.call('EXISTS', ns .. 'line:' .. pair('?', kind)) == 1 then return true end
  end
  return false
end

-- Lanes that were idle for so long that they were forgotten.
local function forgotten(ready)
  local names = {}
  for _, name in ipairs(ready) do
    if redis.call('EXISTS', lines.lane_key(name)) == 0 then names[#names + 1] = name end
  end
  return names
end

-- What the process must see to before it claims, because it takes handlers or settings.
function claim.first(want)
  if want.regardless then return {unknown = {}, forgotten = {}} end
  local unknown_jobs = unknown(want)
  local ready = want.lanes > 0 and lane_claim.ready(want.names) or {}
  return {unknown = unknown_jobs, forgotten = forgotten(ready)}
end

function claim.prepare()
  claim.fail_overdue()
  stage()
end

local function earliest(index)
  return tonumber(redis.call('ZRANGE', ns .. index, 0, 0, 'WITHSCORES')[2])
end

-- When the next scheduled job, or a queued job's deadline, comes up.
function claim.next_due()
  local scheduled, deadline = earliest('scheduled'), earliest('deadlines')
  return scheduled and deadline and math.min(scheduled, deadline) or scheduled or deadline
end

-- Lease up to `want.limit` jobs without a lane; `others` are leases in lanes of this trip.
function claim.without_lane(member, want, others)
  if want.limit == 0 then return {} end
  local ordinary, alone = want.ordinary, want.crashed
  for _, one in ipairs(others) do
    if ordinary and not pick.high(one.row) then ordinary = ordinary - 1 end
    if jobs.crashed(one.row) then alone = false end
  end
  local picked = pick.first('line:', '', want.names, want.limit)
  if alone then
    local crashed = pick.first('alone:', '', want.names, 1)
    if crashed[1] then
      table.insert(picked, 1, crashed[1])
      picked[want.limit + 1] = nil
    end
  end
  picked = pick.within(picked, ordinary)
  pick.lease(picked, member)
  pick.serve('', picked)
  return picked
end
