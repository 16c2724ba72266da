-- Claiming from lanes: a job and its permit together, or neither.

local lane_claim = {}

-- Those of these kinds that have jobs waiting in some lane.
local function in_lines(names)
  local wanted, kinds = {}, {}
  for _, kind in ipairs(names) do wanted[kind] = true end
  for _, kind in ipairs(redis.call('SMEMBERS', ns .. 'lined')) do
    if wanted[kind] then kinds[#kinds + 1] = kind end
  end
  return kinds
end

-- The lanes with lines to be looked at now, the longest due first.
function lane_claim.ready(names)
  local found = {}
  for _, kind in ipairs(in_lines(names)) do
    local flat = redis.call(
      'ZRANGEBYSCORE', ns .. 'looks:' .. kind, '-inf', now, 'WITHSCORES',
      'LIMIT', 0, line.LINES_PER_CLAIM)
    for n = 1, #flat, 2 do found[#found + 1] = {tonumber(flat[n + 1]), flat[n]} end
  end
  table.sort(found, function(a, b)
    if a[1] ~= b[1] then return a[1] < b[1] end
    return a[2] < b[2]
  end)
  local ready, seen = {}, {}
  for _, look in ipairs(found) do
    if not seen[look[2]] and #ready < line.LINES_PER_CLAIM then
      seen[look[2]], ready[#ready + 1] = true, look[2]
    end
  end
  return ready
end

-- When the next line of these kinds wants to be looked at.
function lane_claim.next_look(names)
  local soonest
  for _, kind in ipairs(in_lines(names)) do
    local at = tonumber(redis.call('ZRANGE', ns .. 'looks:' .. kind, 0, 0, 'WITHSCORES')[2])
    if at and (not soonest or at < soonest) then soonest = at end
  end
  return soonest
end

-- Set when a lane's lines of these kinds are looked at again, and forget those in which nobody
-- waits.
local function look_at(name, names, at, waits_for)
  local wanted = {}
  for _, kind in ipairs(names) do wanted[kind] = true end
  for _, kind in ipairs(redis.call('SMEMBERS', ns .. 'kinds:' .. name)) do
    if wanted[kind] then
      if lines.empty(name, kind) then
        lines.forget(name, kind)
      else
        redis.call('ZADD', ns .. 'lines:' .. kind, now, name)
        if at then lines.look_at(name, kind, at) end
        if waits_for then lines.wait_for(name, kind, waits_for, now, at) end
      end
    end
  end
end

local function look_again(some, names, amount)
  local at, waits_for = line.look_again(some, now, amount)
  look_at(some[1].name, names, at, waits_for)
  lanes.pass_on(some)
end

-- The lease's timeout, if the lane's limit is shorter.
local function shorter(lane, row)
  local own = tonumber(row.timeout)
  return lane.timeout and (not own or lane.timeout < own) and exact(lane.timeout) or nil
end

-- The first in a lane's lines, or in those of the jobs that a budget has paused: one with a crash on
-- its record, if there may be one, and others.
local function first_in(prefix, name, kinds, most, crashed)
  local picked = pick.first(prefix .. 'line:', name, kinds, most)
  if crashed then
    local alone = pick.first(prefix .. 'alone:', name, kinds, 1)
    if alone[1] then table.insert(picked, 1, alone[1]) end
  end
  return picked
end

-- The first whose payers may spend; if there is nobody, when to look again.
local function choose(some, kinds, most, crashed)
  local name = some[1].name
  if not budgets.any() then return first_in('', name, kinds, most, crashed) end
  local function first(prefix, of_kinds, wanted)
    return pick.within(first_in(prefix, name, of_kinds, wanted, crashed))
  end
  local counts = amounts.counted(some)
  return budgets.choose(some, kinds, most, crashed, counts, first)
end

local function claim_in(some, member, want, room, crashed, ordinary)
  local lane, name, kinds = some[1], some[1].name, want.names
  lanes.end_lost_trials(some)
  local most = line.room(some, room, now)
  if most < 1 then
    look_again(some, kinds)
    return {}
  end
  local picked, later = choose(some, kinds, line.choice(lane, most), crashed)
  picked = pick.within(picked, ordinary)
  if #picked == 0 then
    -- Nobody there, or only jobs this process may not take just now.
    look_at(name, kinds, later or now + line.LATER_SECONDS)
    lanes.pass_on(some)
    return {}
  end
  picked = line.chosen(lane, picked)
  local resumes, bookings = {}, amounts.counted(some) and {} or nil
  for n = 1, math.min(#picked, most) do
    local row = picked[n].row
    resumes[n] = string.find(row.waits_lane or '', '\n', 1, true) ~= nil
    if bookings then
      local amount = (row.amount or '') ~= '' and cjson.decode(row.amount) or nil
      local seq, token = tonumber(row.seq), (row.token or 0) + 1
      bookings[n] = amounts.booking(some, seq, token, amount, picked[n].kind)
    end
  end
  local slack = want.slack or 0
  local starts = limits.starts(some, resumes, now, slack, bookings)
  local tolerance, leased, names = bookings and amounts.tolerance(some) or math.huge, {}, {}
  for n, one in ipairs(some) do
    tolerance, names[n] = math.min(tolerance, one.tolerance), one.name
  end
  for n, start in ipairs(starts) do
    local one = picked[n]
    one.start_at = exact(start)
    one.void_at = resumes[n] and 'inf' or exact(start + slack + tolerance)
    one.timeout = shorter(lane, one.row)
    if bookings then
      one.reserved = resumes[n] and '' or cjson.encode(bookings[n].amount)
      one.refused = not resumes[n] and bookings[n].refusal or nil
      one.usual = not resumes[n] and bookings[n].kind ~= nil
    end
    leased[n] = one
    lanes.take_slots(names, member, tonumber(one.row.seq))
  end
  if #leased > 0 then
    if lane_state.open(lane) then
      lane.trial, lane.trial_holder = tonumber(leased[1].row.seq), member
    end
    pick.lease(leased, member)
    pick.serve(name, leased)
  end
  for _, one in ipairs(some) do lanes.save(one) end
  local next_one = bookings and bookings[#leased + 1]
  look_again(some, kinds, next_one and next_one.amount)
  return leased
end

-- Lease up to `want.lanes` jobs that their lanes can take now, each with a start time.
function lane_claim.all(member, want, ready)
  local leased, crashed, ordinary = {}, want.crashed, want.ordinary
  for _, name in ipairs(ready) do
    if #leased >= want.lanes then break end
    local some = lanes.with_parent(name)
    local more = claim_in(some, member, want, want.lanes - #leased, crashed, ordinary)
    for _, one in ipairs(more) do
      leased[#leased + 1] = one
      crashed = crashed and not jobs.crashed(one.row)
      if ordinary and not pick.high(one.row) then ordinary = ordinary - 1 end
    end
  end
  return leased
end
