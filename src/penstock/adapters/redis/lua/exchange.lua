#!lua flags=allow-oom
-- needs: base lines jobs log turns settle pick claim
-- One trip of a worker process: settle what has ended, note progress, claim what fits.
--
-- An answer may be lost on its way. The process then says which trip it heard nothing of; if that
-- one was made, what it claimed goes back to the line now.
-- Allowed when memory is full: what runs must be able to end.

local member, want = ask.member, ask.want
local process = ns .. 'process:' .. member

local here = redis.call('HMGET', process, 'trip', 'claimed')
local is_member = redis.call('EXISTS', process) == 1
if ask.unanswered and tonumber(here[1]) == ask.unanswered then
  for seq, token in string.gmatch(here[2], '(%d+):(%d+)') do
    ask.settlements[#ask.settlements + 1] = {
      seq = tonumber(seq), token = tonumber(token), outcome = 'handed back'}
  end
end

local stale = settle.all(ask.settlements)
settle.progress(ask.progress)

local leases, claimed, next_at, lapsed, unknown = {}, {}, nil, {}, {}
if want and is_member then
  claim.prepare()
  lapsed, unknown = claim.first(member, want)
  if #lapsed == 0 and #unknown == 0 then
    local picked = claim.without_lane(member, want, {})
    for n, one in ipairs(picked) do claimed[n] = one.row.seq .. ':' .. one.row.token end
    leases = pick.told(picked)
    if #picked < want.limit or want.limit == 0 then next_at = claim.next_due() end
  end
end
if is_member then
  redis.call('HSET', process, 'trip', ask.trip, 'claimed', table.concat(claimed, ' '))
end
return done({
  exact(now), is_member and 1 or 0, stale, {}, leases, next_at and exact(next_at) or '', lapsed,
  unknown})
