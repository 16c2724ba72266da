#!lua flags=allow-oom
-- needs: base lines jobs log stops turns lane_state usual_amounts amounts learnt limits breaker verdict waiting lanes lane_settle settle pick budgets lane_claim claim
-- One trip of a worker process: take permits back, settle what has ended, note progress, claim.
--
-- An answer may be lost on its way. The process then says since which trip it has heard nothing;
-- what the last one that was made has claimed goes back to the line now, and what it has given
-- back is not given back again. (A settlement that is made again changes nothing.) A trip may also
-- arrive late, after the process has given it up and made others: then it is not made at all.
--
-- A server that has lost its last moments knows fewer trips than it has answered, and says so (2 for
-- whether it is a member). The next trip tells what the process knows to hold ("seq" to id and token,
-- and its permits): what the server has besides was ended in the past that was lost, and goes back.
-- Allowed when memory is full: what runs must be able to end.

local member, want = ask.member, ask.want
local process = ns .. 'process:' .. member

local here = redis.call('HMGET', process, 'trip', 'claimed', 'life')
local is_member = here[3] == ask.life
local last_trip = is_member and tonumber(here[1]) or 0
if is_member and ask.trip <= last_trip then return {exact(now), 1, {}, {}, {}, '', {}, {}} end
if ask.unanswered and last_trip >= ask.unanswered then
  for seq, token, lane in string.gmatch(here[2], '(%d+) (%d+) ([^\n]*)') do
    ask.settlements[#ask.settlements + 1] = {
      seq = seq, token = tonumber(token), outcome = 'handed back',
      lane = lane ~= '' and lane or nil}
  end
end
local forgets = is_member and last_trip < ask.answered
if is_member and ask.known then
  for _, seq in ipairs(redis.call('SMEMBERS', ns .. 'held:' .. member)) do
    local row = jobs.load(seq)
    if ask.known[seq] ~= row.id .. ' ' .. row.token then -- also if it was cancelled meanwhile
      ask.settlements[#ask.settlements + 1] = {
        seq = seq, token = tonumber(row.token), outcome = 'handed back',
        lane = row.lane ~= '' and row.lane or nil}
    end
  end
  local lost = {}
  for _, ref in ipairs(redis.call('HKEYS', ns .. 'slotted:' .. member)) do
    if tonumber(ref) < 0 and not ask.permits[ref] then lost[#lost + 1] = tonumber(ref) end
  end
  lanes.free_slots(member, lost)
end
local returned = {}
for _, one in ipairs(ask.returned) do
  if one.trip > last_trip then returned[#returned + 1] = one end
end

local stale, spared = {}, {}
if is_member then
  lane_settle.give_back(member, returned)
  settle.progress(member, ask.progress) -- before: it may be the last word of what is settled
  stale, spared = settle.all(member, ask.settlements)
else
  stale = settle.refused(ask.settlements)
end

local first = {unknown = {}, forgotten = {}}
local picked, claimed, next_at = {}, {}, nil

local function sooner(at) if at and (not next_at or at < next_at) then next_at = at end end

if want and is_member then
  claim.prepare()
  first = claim.first(want)
  if #first.unknown + #first.forgotten == 0 then
    if want.lanes > 0 then picked = lane_claim.all(member, want, lane_claim.ready(want.names)) end
    local without_lane = claim.without_lane(member, want, picked)
    for _, one in ipairs(without_lane) do picked[#picked + 1] = one end
    for n, one in ipairs(picked) do
      claimed[n] = string.format('%s %d %s', one.row.seq, one.row.token, one.row.lane)
    end
    if want.lanes > 0 then sooner(lane_claim.next_look(want.names)) end
    if #without_lane < want.limit or want.limit == 0 then sooner(claim.next_due()) end
    -- More than were asked about before: come again at once.
    if want.regardless and claim.any_unknown(want) then sooner(now) end
  end
end
lanes.announce()
if is_member then
  redis.call('HSET', process, 'trip', ask.trip, 'claimed', table.concat(claimed, '\n'))
end
return done({
  exact(now), forgets and 2 or is_member and 1 or 0, stale, spared, pick.told(picked),
  next_at and exact(next_at) or '', first.unknown, first.forgotten})
