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

-- Give a new job the records of another below a position.
function records.take_over(source, before, seq)
  local flat = redis.call('ZRANGEBYSCORE', records.order(source), '-inf', '(' .. exact(before),
    'WITHSCORES')
  for n = 1, #flat, 2 do
    local row = redis.call('HGET', ns .. 'steps:' .. source, flat[n])
    redis.call('HSET', ns .. 'steps:' .. seq, flat[n], row)
    redis.call('ZADD', records.order(seq), flat[n + 1], flat[n])
  end
  -- A run with token 1 would look for none.
  if #flat > 0 then redis.call('HSET', ns .. 'job:' .. seq, 'token', 1) end
end
