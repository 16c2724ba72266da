-- Where records stand among those of their job: see order:SEQ in base.lua.

local POSITIONS_A_CLAIM = 16777216

local records = {}

function records.order(seq) return ns .. 'order:' .. seq end

-- Give a record its position, unless it has one: above every one that the job ever had, since its
-- token grows with each claim.
function records.place(seq, token, key)
  local order = records.order(seq)
  if redis.call('ZSCORE', order, key) then return end
  local last = tonumber(redis.call('ZREVRANGE', order, 0, 0, 'WITHSCORES')[2] or 0)
  redis.call('ZADD', order, exact(math.max(token * POSITIONS_A_CLAIM, last) + 1), key)
end
