-- Room for amounts in lanes: the twin of penstock/lanes/amounts.py, which says more. An amount is
-- {tokens, input, output, cost}; a booking {ref, token, amount, refusal, kind}.

local amounts = {
  NONE = '[]', WINDOW_WHY = 'its tokens', DAY_WHY = 'its daily amount'}

do
  local DAY = 86400
  local GONE_SECONDS = 2
  local LEAST_LOOK = 0.05
  local LEAST_TOLERANCE = 0.005
  local LOOK_SECONDS = 1
  local OPEN_LEAST = 256
  local OPEN_MOST = 4096
  local OVERTAKEN = 0.5
  local PARTS = 60
  local SPARE = 1.02
  local WAITING_MOST = 8
  local WINDOWED = 3

  local OF_WINDOW = {'tokens in a window', 'input tokens in a window', 'output tokens in a window'}

  local function limits_in(text)
    local said = cjson.decode(text)
    local interval = said.interval or 0
    return {
      interval = interval, part = interval / PARTS,
      window = {said.tokens, said.input, said.output, n = WINDOWED},
      day = {said.tokens_day, said.cost_day, n = 2},
      refills = said.refills, alone = said.alone}
  end

  local function usable(limits, limit)
    return limits.refills and math.floor(limit * (2 - SPARE)) or limit
  end

  -- Nested lists of numbers and names, so that they read back as the same numbers.
  local function text(value)
    if type(value) == 'number' then return exact(value) end
    if type(value) == 'string' then return cjson.encode(value) end
    local parts = {}
    for n, one in ipairs(value) do parts[n] = text(one) end
    return '[' .. table.concat(parts, ',') .. ']'
  end

  local function write(lane, use)
    lane.used = text({
      use.interval, use.day, use.today, use.base, use.parts, use.open, use.usual, use.waiting})
  end

  -- Add to a part of the window; with `there` only if it is still kept.
  local function add(use, number, amount, there)
    local place = #use.parts
    while place > 0 and use.parts[place][1] > number do place = place - 1 end
    if place > 0 and use.parts[place][1] == number then
      local part = use.parts[place]
      for n = 1, WINDOWED do part[1 + n] = part[1 + n] + amount[n] end
    elseif not there then
      table.insert(use.parts, place + 1, {number, amount[1], amount[2], amount[3]})
    end
  end

  -- Make one part of those from number `above` on, exclusively.
  local function gather(use, number, above)
    local kept, gathered = {}, {}
    for _, part in ipairs(use.parts) do
      local into = part[1] > above and gathered or kept
      into[#into + 1] = part
    end
    use.parts = kept
    for _, part in ipairs(gathered) do add(use, number, {part[2], part[3], part[4]}) end
  end

  -- The limits, and what is used of them. Where the interval was another, all of it is of now.
  local function read(lane, at)
    local limits = limits_in(lane.amounts)
    local use = {
      interval = limits.interval, day = 0, today = {0, 0}, base = {}, parts = {}, open = {},
      usual = {}, waiting = {}}
    if (lane.used or amounts.NONE) ~= amounts.NONE then
      local rows = cjson.decode(lane.used)
      use = {
        interval = rows[1], day = rows[2], today = rows[3], base = rows[4], parts = rows[5],
        open = rows[6], usual = rows[7] or {}, waiting = rows[8] or {}}
    end
    if use.interval ~= limits.interval then
      use.interval, use.base = limits.interval, {}
      if limits.interval > 0 then
        gather(use, math.floor(at / limits.part), -math.huge)
      else
        use.parts = {}
      end
    end
    return limits, use
  end

  -- Why a request of this size can never start; nil: it can.
  function amounts.refusal(some, amount)
    for _, lane in ipairs(some) do
      local limits = lane.amounts and limits_in(lane.amounts) or {alone = true}
      local function too_large(limit, wanted, what)
        return limit and wanted > limit and string.format(
          '%d %s are more than lane %s has, %d', wanted, what, lane.name, limit)
      end
      if not limits.alone then
        for n = 1, WINDOWED do
          local limit = limits.window[n]
          local said = too_large(limit and usable(limits, limit), amount[n], OF_WINDOW[n])
          if said then return said end
        end
        local said = too_large(limits.day[1], amount[1], 'tokens in a day')
          or too_large(limits.day[2], amount[4], 'millionths of money in a day')
        if said then return said end
      end
    end
    return nil
  end

  -- What a request of this kind reserves: its amount or, if it says nothing of that, what is usual of
  -- its kind, as far as the lanes have that much.
  function amounts.booking(some, ref, token, amount, kind)
    if amount then
      return {ref = ref, token = token, amount = amount, refusal = amounts.refusal(some, amount)}
    end
    local found
    for _, lane in ipairs(some) do
      if lane.amounts then
        local limits, use = read(lane, lane.touched_at)
        found = found or usual_amounts.usual(use.usual, kind) or {0, 0, 0, 0}
        for n = 1, WINDOWED do
          local limit = limits.window[n]
          if limit then found[n] = math.min(found[n], usable(limits, limit)) end
        end
        if limits.day[1] then found[1] = math.min(found[1], limits.day[1]) end
        if limits.day[2] then found[4] = math.min(found[4], limits.day[2]) end
      end
    end
    return {ref = ref, token = token, amount = found, kind = kind}
  end

  -- How late a start may be, whatever pace an operator has set.
  function amounts.tolerance(some)
    local found = math.huge
    for _, lane in ipairs(some) do
      found = math.min(found, lane.tolerance)
      local interval = lane.amounts and limits_in(lane.amounts).interval or 0
      if interval > 0 then
        found = math.min(found, math.max(LEAST_TOLERANCE, interval * (SPARE - 1) / 2))
      end
    end
    return found
  end

  local function same(waiting, amount)
    for n = 1, 4 do
      if waiting[2 + n] ~= amount[n] then return false end
    end
    return true
  end

  -- The amount for which room is kept, too, before this one is let by: that of who has waited
  -- longest, if that is long, unless it is this one.
  local function before_of(limits, use, amount, at)
    for _, one in ipairs(use.waiting) do
      if one[2] + GONE_SECONDS >= at then
        if same(one, amount) or one[1] + OVERTAKEN * limits.interval > at then return nil end
        return {one[3], one[4], one[5]}
      end
    end
    return nil
  end

  local function wanted_of(wanted, limit, alone)
    return math.max(1, alone and math.min(wanted, limit) or wanted)
  end

  -- When enough of a sliding window has left it.
  local function left(limits, use, meter, limit, wanted, at)
    if wanted > limit then return math.huge end
    local total = 0
    for _, part in ipairs(use.parts) do total = total + part[1 + meter] end
    for _, part in ipairs(use.parts) do
      if total + wanted <= limit then break end
      at = math.max(at, (part[1] + 1) * limits.part + limits.interval * SPARE)
      total = total - part[1 + meter]
    end
    return at
  end

  -- What a bucket has at least.
  local function level_at(limits, use, meter, limit, at)
    local rate = limits.window[meter] / limits.interval
    local level, since = limit, at
    if use.base[1] then
      level, since = math.min(level, use.base[1 + meter]), use.base[1] * limits.part
    elseif use.parts[1] then
      since = use.parts[1][1] * limits.part
    end
    for _, part in ipairs(use.parts) do
      local ends = math.max(since, math.min((part[1] + 1) * limits.part, at))
      level = math.min(limit, level + rate * (ends - since)) - part[1 + meter]
      since = ends
    end
    return math.min(limit, level + rate * math.max(0, at - since))
  end

  -- When a bucket has enough.
  local function refilled(limits, use, meter, limit, wanted, at)
    if wanted > limit then return math.huge end
    if level_at(limits, use, meter, limit, at) >= wanted then return at end
    if #use.parts > 0 then at = math.max(at, (use.parts[#use.parts][1] + 1) * limits.part) end
    local level = level_at(limits, use, meter, limit, at)
    if level >= wanted then return at end
    return at + (wanted - level) * limits.interval / limits.window[meter]
  end

  -- When, from `at` on, all of `some` have room for an amount; and which lane, and why, is the last.
  function amounts.room(some, amount, at)
    local found = {at = at, lane = '', why = ''}
    local function later(when, lane, why)
      if when > found.at then found = {at = when, lane = lane.name, why = why} end
    end
    for _, lane in ipairs(some) do
      if lane.amounts then
        local limits, use = read(lane, at)
        local before = before_of(limits, use, amount, at)
        for n = 1, WINDOWED do
          if limits.window[n] then
            local limit = usable(limits, limits.window[n])
            local wanted = wanted_of(amount[n], limit, limits.alone)
            if before then wanted = math.max(wanted, math.min(wanted + before[n], limit)) end
            local when = (limits.refills and refilled or left)(limits, use, n, limit, wanted, at)
            later(when, lane, amounts.WINDOW_WHY)
          end
        end
        local today = lane_state.day_of(lane, at)
        for n = 1, 2 do
          local limit = limits.day[n]
          if limit then
            local used = use.day >= today and use.today[n] or 0
            local wanted = wanted_of(n == 1 and amount[1] or amount[4], limit, limits.alone)
            if wanted > limit then
              later(math.huge, lane, amounts.DAY_WHY)
            elseif used + wanted > limit then
              later((math.max(today, use.day) + 1) * DAY + lane.day_offset, lane, amounts.DAY_WHY)
            end
          end
        end
      end
    end
    return found
  end

  -- How long to wait at most before it is looked again for room for a job.
  function amounts.pause(some)
    local pause = LOOK_SECONDS
    for _, lane in ipairs(some) do
      local limits = lane.amounts and limits_in(lane.amounts)
      if limits and limits.interval > 0 then pause = math.min(pause, limits.part) end
    end
    return math.max(LEAST_LOOK, pause)
  end

  -- Parts that have left the window of the part of this number; of a bucket they become its base.
  local function forget(limits, use, number)
    local kept = number - math.ceil(PARTS * SPARE) - 1
    if not limits.refills then
      use.base = {}
      while use.parts[1] and use.parts[1][1] < kept do table.remove(use.parts, 1) end
      return
    end
    if not use.base[1] then
      use.base = {use.parts[1][1]}
      for n = 1, WINDOWED do
        use.base[1 + n] = limits.window[n] and usable(limits, limits.window[n]) or 0
      end
    end
    while use.parts[1] and use.parts[1][1] < kept do
      local gone = {base = use.base, parts = {table.remove(use.parts, 1)}}
      local number_gone = gone.parts[1][1]
      local base = {number_gone + 1}
      for n = 1, WINDOWED do
        local limit = limits.window[n]
        base[1 + n] = limit and level_at(
          limits, gone, n, usable(limits, limit), (number_gone + 1) * limits.part) or 0
      end
      use.base = base
    end
  end

  -- Of the day that `at` is in; of a later one where that has begun.
  local function spend(lane, use, at, amount)
    local day = lane_state.day_of(lane, at)
    if day > use.day then use.day, use.today = day, {0, 0} end
    use.today = {use.today[1] + amount[1], use.today[2] + amount[4]}
  end

  -- Whether what was reserved then can still be given back.
  local function matters(lane, limits, before, at)
    if limits.interval > 0 and before + 2 * limits.interval > at then return true end
    return (limits.day[1] or limits.day[2]) ~= nil
      and lane_state.day_of(lane, before) >= lane_state.day_of(lane, at)
  end

  -- Somebody waits for room. Who has waited longest is overtaken only for a while.
  local function wait(lane, amount, at)
    local _, use = read(lane, at)
    local waiting, known = {}, nil
    for _, one in ipairs(use.waiting) do
      if one[2] + GONE_SECONDS >= at then
        waiting[#waiting + 1] = one
        if same(one, amount) then known = one end
      end
    end
    use.waiting = waiting
    if known then
      if known[2] + GONE_SECONDS / 4 >= at then return end
      known[2] = at
    elseif #waiting < WAITING_MOST then
      waiting[#waiting + 1] = {at, at, amount[1], amount[2], amount[3], amount[4]}
    else
      return
    end
    write(lane, use)
  end

  local function reserve(lane, booking, start, kind)
    local limits, use = read(lane, start)
    local amount = booking.amount
    local waiting = {}
    for _, one in ipairs(use.waiting) do
      if not same(one, amount) then waiting[#waiting + 1] = one end
    end
    use.waiting = waiting
    if limits.interval > 0 then
      local number = math.floor(start / limits.part)
      add(use, number, amount)
      forget(limits, use, number)
    end
    spend(lane, use, start, amount)
    local open = {}
    for _, one in ipairs(use.open) do
      if matters(lane, limits, one[3], start) then open[#open + 1] = one end
    end
    open[#open + 1] = {
      booking.ref, booking.token, start, amount[1], amount[2], amount[3], amount[4], kind}
    local most = math.max(OPEN_LEAST, math.min(2 * lane.max_parallel, OPEN_MOST))
    while #open > most do table.remove(open, 1) end
    use.open = open
    write(lane, use)
  end

  -- Reserve an amount in all of `some`, from `at` on and until `latest` at the latest: the start.
  -- Nil: there is no room until then. It may come `slack` seconds later.
  function amounts.book(some, booking, at, latest, slack)
    local found = amounts.room(some, booking.amount, at)
    local start = found.at
    if start > latest then
      for _, lane in ipairs(some) do
        if lane.name == found.lane and found.why == amounts.WINDOW_WHY then
          wait(lane, booking.amount, at)
        end
      end
      return nil
    end
    local kind = booking.kind
    for _, lane in ipairs(some) do
      if lane.amounts then
        reserve(lane, booking, start + (slack or 0), kind)
        kind = nil -- it is learnt once
      elseif not lane.used then
        lane.used = amounts.NONE -- that of its parent is to be settled
      end
    end
    return start
  end

  -- A request has ended, and has used so much; nil: what was reserved stands. What is settled again
  -- changes nothing. Whether any of `some` has changed, and whether anything was given back.
  function amounts.settle(some, ref, token, used, at)
    local changed, refunded = false, false
    for _, lane in ipairs(some) do
      if lane.amounts then
        local limits, use = read(lane, at)
        local place
        for n, one in ipairs(use.open) do
          if one[1] == ref and one[2] == token then place = place or n end
        end
        if place then
          local found = table.remove(use.open, place)
          if used then
            local start, less, more, any = found[3], {}, {}, false
            for n = 1, 4 do
              local change = used[n] - found[3 + n]
              less[n], more[n] = math.min(0, change), math.max(0, change)
              any = any or change > 0
              refunded = refunded or change < 0
            end
            if limits.interval > 0 then
              add(use, math.floor(start / limits.part), less, true)
              if any then add(use, math.floor(at / limits.part), more) end
            end
            if use.day == lane_state.day_of(lane, start) then
              use.today = {use.today[1] + less[1], use.today[2] + less[4]}
            end
            spend(lane, use, at, more)
            if found[8] then usual_amounts.learn(use.usual, found[8], used) end
          end
          write(lane, use)
          changed = true
        end
      end
    end
    return changed, refunded
  end

  -- The clock was set back: what is ahead of it now is of now.
  function amounts.set_back(lane, at)
    if not lane.amounts or not lane.used then return end
    local limits, use = read(lane, at)
    if limits.interval > 0 then
      local number = math.floor(at / limits.part)
      gather(use, number, number)
      if use.base[1] and use.base[1] > number then use.base[1] = number end
    end
    for _, one in ipairs(use.open) do one[3] = math.min(one[3], at) end
    use.waiting = {}
    use.day = math.min(use.day, lane_state.day_of(lane, at))
    write(lane, use)
  end
end

-- Whether any of these lanes counts amounts.
function amounts.counted(some)
  for _, lane in ipairs(some) do
    if lane.amounts then return true end
  end
  return false
end
