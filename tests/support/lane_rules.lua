-- Applies lane rules, one after the other, to a lane and its parent, and tells what came of each:
-- the answer and both lanes, as JSON.

local some = ask.lanes

local function json(value)
  if value == nil then return 'null' end
  if type(value) == 'number' then
    return value == math.huge and '"inf"' or exact(value)
  end
  if type(value) ~= 'table' then return cjson.encode(value) end
  local parts = {}
  if #value > 0 or next(value) == nil then
    for n, member in ipairs(value) do parts[n] = json(member) end
    return '[' .. table.concat(parts, ',') .. ']'
  end
  for name, member in pairs(value) do
    parts[#parts + 1] = cjson.encode(name) .. ':' .. json(member)
  end
  return '{' .. table.concat(parts, ',') .. '}'
end

local rules = {}

function rules.grant(step, at)
  return limits.grant(some, step.wanted, at, step.ahead, step.held, nil, step.question, step.slack)
end

local function booking(of)
  return {ref = of[1], token = of[2], amount = of[3], refusal = amounts.refusal(some, of[3])}
end

function rules.starts(step, at)
  local bookings = nil
  if step.bookings and amounts.counted(some) then
    bookings = {}
    for n, one in ipairs(step.bookings) do bookings[n] = booking(one) end
  end
  return limits.starts(some, step.resumes, at, step.slack, bookings)
end

function rules.book(step, at)
  local of = step.booking
  local one = {ref = of[1], token = of[2], amount = of[3]}
  if of[4] then
    one.amount = {0, 0, 0, 0}
    if amounts.counted(some) then one = amounts.booking(some, of[1], of[2], nil, of[4]) end
  end
  local start = amounts.book(some, one, at, at + step.ahead, step.slack)
  return {amounts.tolerance(some), start}
end

function rules.settle(step, at)
  local _, refunded = amounts.settle(some, step.ref, 0, step.used, at)
  return {refunded}
end

function rules.room_for(step, at)
  local room = amounts.room(some, step.amount, at)
  return {room.at < math.huge and room.at or 'never', room.lane, room.why}
end

function rules.next_chance(step, at) return {limits.next_chance(some, at, step.amount)} end

function rules.repace(step, at)
  limits.repace(some[1], step.old, at)
  return {}
end

function rules.look_again(_, at)
  local when, waits_for = line.look_again(some, at)
  return {when or 'none', waits_for or 'none'}
end

function rules.room(step, at)
  return {line.room(some, step.wanted, at), line.choice(some[1], step.wanted)}
end

function rules.chosen(step)
  local picked = {}
  for n, seq in ipairs(step.seqs) do picked[n] = {row = {seq = seq}} end
  local seqs = {}
  for n, one in ipairs(line.chosen(some[1], picked)) do seqs[n] = one.row.seq end
  return seqs
end

function rules.learn(step, at)
  local fault, spared, closed = verdict.learn(
    some[1], step.holder, step.ref, step.job, step.token, step.report, at)
  return {fault, spared, closed}
end

function rules.teach(step, at)
  local report = step.report
  if not report then return {} end
  for n = 1, step.times do
    if step.full then some[1].in_flight = some[1].max_parallel end
    if report.took or some[1].auto then
      verdict.teach(some, report, at + n * (report.took or 0))
    end
  end
  return {some[1].max_parallel}
end

function rules.probed(step, at)
  local fault, spared = breaker.probed(some[1], step.ok, at)
  return {fault, spared}
end

function rules.permit(step, at)
  local held = {}
  for _, name in ipairs(step.held) do held[name] = true end
  local granted, busy = permit.ask(some, step.request, step.holder, held, at)
  if granted then
    local void_at = granted.void_at < math.huge and granted.void_at or 'never'
    return {granted.start_at, void_at, granted.timeout or 'none', granted.trial}
  end
  return {busy.lane, busy.until_ or 'none', busy.why, busy.give_up or false, busy.refused or false}
end

function rules.set_back(step, at)
  some[1].touched_at = at + step.ahead
  return {breaker.set_back(some[1], at)}
end

function rules.judge(step, at)
  local s = step.settlement
  local fault = s.report and s.report.told and verdict.fault_of_told(some[1], s.report) or step.fault
  local spared = verdict.give(s, some[1], fault, at)
  return {spared, s.outcome, spared and s.run_at or 0, spared and s.waits_lane or 'none'}
end

local told = {}
for n, step in ipairs(ask.steps) do
  ask.jitter = step.jitter
  local answer = rules[step.rule](step, step.at)
  told[n] = json({answer = answer, lanes = some})
end
return told
