-- Learns how many requests at a time a lane takes: the twin of penstock/lanes/learnt.py, which says
-- more. `lane.auto` is {least, most} as JSON, `lane.learnt` the fields of `LaneKnowledge` in their order.

local learnt = {}

do
  local ROUND = 8
  local BUSY = 0.8
  local SLOW = 1.5
  local SLOW_ROUNDS = 2
  local NOISE = 1.25
  local ROOM = 1.2
  local HELPED = 0.8
  local CUT = 0.7
  local TRY_AFTER = 250
  local PAUSES = 20
  local FADES = 0.98
  local AT_FIRST = 'nothing is known yet'
  local MORE = 'no errors, and answers as fast'
  local TRYING = 'trying what was too many before'
  local REFUSED = '429'
  local SLOWER = 'answers took longer'
  local NO_HELP = 'answers were not faster with fewer'
  local LIMITS = 'the configured bounds'
  local FIELDS = {
    'value', 'why', 'since', 'proven', 'ceiling', 'step', 'passed', 'not_before', 'usual', 'doubt',
    'slow', 'undo', 'count', 'seconds', 'full', 'told', 'told_at', 'told_until', 'size'}

  local function read(lane)
    local known, row = {}, lane.learnt and cjson.decode(lane.learnt) or {lane.max_parallel, AT_FIRST}
    for n, name in ipairs(FIELDS) do known[name] = row[n] or 0 end
    return known
  end

  local function write(lane, known)
    local parts = {}
    for n, name in ipairs(FIELDS) do
      local value = known[name]
      parts[n] = type(value) == 'number' and exact(value) or cjson.encode(value)
    end
    lane.learnt = '[' .. table.concat(parts, ',') .. ']'
  end

  local function become(known, value, why, at)
    known.value, known.why, known.since = value, why, at
    known.passed, known.count, known.seconds, known.full, known.slow = 0, 0, 0, 0, 0
  end

  -- A round went well, and the lane was full.
  local function more(known, most, at)
    local value, why = known.value, MORE
    known.proven = math.max(known.proven, value)
    if known.ceiling > 0 and value >= known.ceiling then known.ceiling, known.step = 0, 1 end
    if known.ceiling == 0 then
      local step = known.step > 0 and known.step or math.ceil(value / 2)
      known.step = math.min(2 * step, math.ceil(value / 2))
      value = value + step
    elseif value + 1 < known.ceiling then
      value = value + math.floor((known.ceiling - value) / 2)
    elseif known.passed >= TRY_AFTER and at >= known.not_before then
      value, why = known.ceiling, TRYING
    end
    if math.min(value, most) > known.value then become(known, math.min(value, most), why, at) end
  end

  -- Count an answer; at the end of a round make something of that.
  local function answered(known, took, in_flight, least, most, at)
    known.passed, known.count = known.passed + 1, known.count + 1
    known.seconds = known.seconds + took
    if in_flight >= known.value then known.full = known.full + 1 end
    if known.count < math.max(ROUND, known.value) then return end
    local mean, busy = known.seconds / known.count, known.full >= BUSY * known.count
    known.count, known.seconds, known.full = 0, 0, 0
    if known.usual == 0 then known.usual = mean end
    if known.doubt > 0 then
      local no_help = mean > HELPED * known.doubt
      known.doubt = 0
      if no_help then
        known.usual = mean
        become(known, math.min(most, known.undo), NO_HELP, at)
        known.ceiling = 0
        return
      end
    end
    if mean <= SLOW * known.usual then
      known.slow = 0
    elseif known.value > least then
      known.slow = known.slow + 1
      if known.slow < SLOW_ROUNDS then return end
      local fewer = math.floor(known.value * math.max(0.5, ROOM * known.usual / mean))
      known.doubt, known.undo, known.ceiling, known.proven = mean, known.value, known.value, 0
      become(known, math.max(least, math.min(fewer, known.value - 1)), SLOWER, at)
      return
    end
    if mean < NOISE * known.usual then
      known.usual = known.usual + (mean - known.usual) * (mean < known.usual and 0.2 or 0.05)
    end
    if busy then more(known, most, at) end
  end

  -- A request that was begun under this value was answered 429.
  local function too_many(known, least, at)
    known.ceiling, known.doubt, known.step = known.value, 0, 0
    local value = known.proven
    if value == 0 or value >= known.value then
      known.proven, value = 0, math.floor(known.value * CUT)
    end
    become(known, math.max(least, math.min(value, known.value - 1)), REFUSED, at)
  end

  -- Have no more requests under way than the provider says are left.
  local function obey(lane, known, left, began, at)
    local requests, requests_in, tokens, tokens_in, size = unpack(left)
    known.size = math.max(size, known.size * FADES)
    local room, until_ = math.huge, 0
    if requests >= 0 then room, until_ = requests, at + requests_in end
    if tokens >= 0 and (known.size > 0 or tokens == 0) then
      local has = known.size > 0 and math.floor(tokens / known.size) or 0
      if has < room then room, until_ = has, at + tokens_in end
    end
    if room == math.huge then return end
    if began < known.told_at and known.told_until > at and room >= known.told then return end
    known.told, known.told_at, known.told_until = math.floor(math.min(room, 1e9)), at, until_
    if room < 1 and until_ > lane.blocked_until then
      lane.blocked_until, lane.blocked_why = until_, 'rate limited'
    end
  end

  -- Whether a 429 is answered with fewer requests at a time, rather than slower starts.
  function learnt.gives_way(lane)
    return lane.auto ~= nil and lane.max_parallel > cjson.decode(lane.auto)[1]
  end

  -- Apply what the end of a request tells of the lane. Not while an operator has limited it.
  function learnt.hear(lane, report, at)
    if not lane.auto or string.find(lane.limits or '', '"max_parallel"', 1, true) then return end
    local least, most = unpack(cjson.decode(lane.auto))
    local known = read(lane)
    if known.value < least or known.value > most then
      become(known, math.max(least, math.min(known.value, most)), LIMITS, at)
      known.proven, known.ceiling = 0, 0
    end
    local began = at - (report.took or 0)
    if report.left then obey(lane, known, report.left, began, at) end
    if report.news == 'success' and report.took and began >= known.since then
      answered(known, report.took, lane.in_flight, least, most, at)
    elseif report.news == 'rate limited' then
      local pause = report.retry_after or report.resets_after or 0
      known.not_before = math.max(known.not_before, at + PAUSES * pause)
      if began > known.since then too_many(known, least, at) end
    elseif report.news == 'unavailable' then
      known.count, known.seconds, known.full, known.passed = 0, 0, 0, 0
    end
    write(lane, known)
    lane.learnt_parallel = known.value
    if known.told_until > at then
      lane.learnt_parallel = math.max(1, math.min(known.value, known.told))
    end
    lane.max_parallel = lane.learnt_parallel
  end

  -- The clock was set back by `ahead`: what is ahead of it now is of now.
  function learnt.set_back(lane, ahead, at)
    local known = read(lane)
    known.since, known.told_at = math.min(known.since, at), math.min(known.told_at, at)
    known.not_before, known.told_until = known.not_before - ahead, known.told_until - ahead
    write(lane, known)
  end
end
