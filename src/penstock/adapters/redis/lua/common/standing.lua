-- Jobs handed over by the script that stores them, to a process that found too little to do.
--
-- A trip leaves word of how many more it would take (`room` on the process's row), for once and until
-- the process's next trip. What is handed over is told on the process's inbox. That message may be
-- lost: the next trip says whether it came, and if not, the jobs go back.

local STANDING_SECONDS = 3
local FEW = 8
local SHORT = 65536

local standing = {}

-- This process would take so many more jobs without a lane; of its kinds, when they come.
function standing.leave(member, room)
  redis.call('ZREMRANGEBYSCORE', ns .. 'standing', '-inf', now)
  redis.call('HSET', ns .. 'process:' .. member, 'room', room)
  redis.call('ZADD', ns .. 'standing', now + STANDING_SECONDS, member)
end

-- Whether what is new is worth a message: many, or much, is better fetched.
function standing.fits(jobs_made, payload_bytes)
  return jobs_made <= FEW and payload_bytes <= SHORT
end

-- Whether it has this kind, and somebody reads its inbox. (Of a frozen process nobody can tell: so
-- it stands for a short time only.)
local function can_take(kind, kinds, inbox)
  for _, one in ipairs(kinds) do
    if one == kind then return redis.call('PUBSUB', 'NUMSUB', inbox)[2] > 0 end
  end
  return false
end

-- Lease up to so many jobs in line to one who waits for this kind: the seqs.
function standing.hand_over(kind, limit)
  local handed = {}
  for _, member in ipairs(
    redis.call('ZRANGEBYSCORE', ns .. 'standing', now, '+inf', 'LIMIT', 0, FEW)) do
    local process = ns .. 'process:' .. member
    local row = redis.call('HMGET', process, 'kinds', 'inbox', 'room', 'trip')
    local kinds = row[1] and cjson.decode(row[1]) or {}
    if can_take(kind, kinds, row[2]) then
      limit = math.min(limit, tonumber(row[3]))
      local picked = pick.within(pick.first('line:', '', {kind}, limit))
      pick.lease(picked, member)
      pick.serve('', picked)
      local leases = {}
      for n, one in ipairs(picked) do
        leases[n] = string.format('%s %d', one.row.seq, one.row.token)
        handed[one.row.seq] = true
      end
      redis.call('HSET', process, 'handed', row[4] .. '\n' .. table.concat(leases, '\n'))
      redis.call('ZREM', ns .. 'standing', member)
      local told = {tonumber(member), tonumber(row[4]), pick.told(picked)}
      redis.call('PUBLISH', row[2], cjson.encode(told))
      return handed
    end
  end
  return handed
end

-- End what the last trip has left. What was handed over because of it and has not arrived, for which
-- `heard` is not that trip's number: settlements that put it back.
function standing.ended(member, handed, heard)
  redis.call('ZREM', ns .. 'standing', member)
  local lost = {}
  if (handed or '') == '' then return lost end
  redis.call('HSET', ns .. 'process:' .. member, 'handed', '')
  local trip, leases = string.match(handed, '^(%d+)\n(.*)$')
  if tonumber(trip) == heard then return lost end
  for seq, token in string.gmatch(leases, '(%d+) (%d+)') do
    lost[#lost + 1] = {seq = seq, token = tonumber(token), outcome = 'handed back'}
  end
  return lost
end
