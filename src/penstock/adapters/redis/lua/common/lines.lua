-- Lines: (lane, kind) with jobs waiting, and when to look at them next.
--
-- A blocked lane's lines are looked at when it opens, so that they cost nothing before. Bounded by
-- the lines in which jobs wait: a look that finds nobody deletes them.
--   lines:KIND           sorted set lane by the time since when it waits as it does now
--   looks:KIND           sorted set lane by when to look at it next
--   waits:KIND           hash lane -> the lane (its own or the parent) whose slot it waits for
--   waiting:LANE,KIND    sorted set of lanes that wait for a slot of LANE, by since
--   waiters:LANE         set of the kinds of which some do
--   kinds:LANE           set of the kinds that have a line in LANE
--   lined                set of the kinds that have a line in any lane

-- Behind a lane's name: where the slots of its questions are stored once more, to be counted.
local lines = {QUESTIONS = '?'}

function lines.lane_key(name) return ns .. 'lane:' .. name end

-- A job joins a line: the line is there to be looked at, at once or when the lane may be used.
function lines.join(lane, kind, since)
  if redis.call('ZADD', ns .. 'lines:' .. kind, 'NX', since, lane) == 0 then return end
  local wake_at = 0
  local name = lane
  while name do
    local known = redis.call(
      'HMGET', lines.lane_key(name), 'blocked_until', 'retry_at', 'parent')
    wake_at = math.max(wake_at, tonumber(known[1] or 0), tonumber(known[2] or 0))
    name = (known[3] or '') ~= '' and known[3]
  end
  redis.call('SADD', ns .. 'kinds:' .. lane, kind)
  redis.call('SADD', ns .. 'lined', kind)
  redis.call('ZADD', ns .. 'looks:' .. kind, wake_at, lane)
end

-- It no longer waits for a slot.
local function stop_waiting(lane, kind)
  local waits_for = redis.call('HGET', ns .. 'waits:' .. kind, lane)
  if waits_for then
    redis.call('HDEL', ns .. 'waits:' .. kind, lane)
    local waiting = ns .. 'waiting:' .. pair(waits_for, kind)
    redis.call('ZREM', waiting, lane)
    if redis.call('EXISTS', waiting) == 0 then
      redis.call('SREM', ns .. 'waiters:' .. waits_for, kind)
    end
  end
end

-- Look at the line at this time.
function lines.look_at(lane, kind, at)
  stop_waiting(lane, kind)
  redis.call('ZADD', ns .. 'looks:' .. kind, at, lane)
end

-- Look at the line when a slot of `waits_for` is free, or at this time, if there is one.
function lines.wait_for(lane, kind, waits_for, since, at)
  stop_waiting(lane, kind)
  if not at then redis.call('ZREM', ns .. 'looks:' .. kind, lane) end
  redis.call('HSET', ns .. 'waits:' .. kind, lane, waits_for)
  redis.call('ZADD', ns .. 'waiting:' .. pair(waits_for, kind), since, lane)
  redis.call('SADD', ns .. 'waiters:' .. waits_for, kind)
end

function lines.empty(lane, kind)
  local name = pair(lane, kind)
  return redis.call(
    'EXISTS', ns .. 'line:' .. name, ns .. 'alone:' .. name, ns .. 'paused_by:' .. name) == 0
end

-- Nobody waits in it.
function lines.forget(lane, kind)
  stop_waiting(lane, kind)
  redis.call('ZREM', ns .. 'lines:' .. kind, lane)
  redis.call('ZREM', ns .. 'looks:' .. kind, lane)
  redis.call('SREM', ns .. 'kinds:' .. lane, kind)
  if redis.call('EXISTS', ns .. 'lines:' .. kind) == 0 then
    redis.call('SREM', ns .. 'lined', kind)
  end
end

-- What is told of a lane to those who only look: name, row, slots taken, jobs in its lines, slots
-- taken by questions.
function lines.told(name)
  local waiting = 0
  for _, kind in ipairs(redis.call('SMEMBERS', ns .. 'kinds:' .. name)) do
    local prefixes = {''}
    for _, payer in ipairs(redis.call('SMEMBERS', ns .. 'paused_by:' .. pair(name, kind))) do
      prefixes[#prefixes + 1] = 'paused:' .. payer .. '\n'
    end
    for _, prefix in ipairs(prefixes) do
      waiting = waiting + redis.call('ZCARD', ns .. prefix .. 'line:' .. pair(name, kind))
        + redis.call('ZCARD', ns .. prefix .. 'alone:' .. pair(name, kind))
    end
  end
  return {
    name, redis.call('HGETALL', lines.lane_key(name)), redis.call('SCARD', ns .. 'slots:' .. name),
    waiting, redis.call('SCARD', ns .. 'slots:' .. name .. lines.QUESTIONS)}
end

-- How many stand before this place in the lines of a lane.
function lines.ahead(name, place)
  local ahead = 0
  for _, kind in ipairs(redis.call('SMEMBERS', ns .. 'kinds:' .. name)) do
    for _, prefix in ipairs({'line:', 'alone:'}) do
      ahead = ahead + redis.call('ZLEXCOUNT', ns .. prefix .. pair(name, kind), '-', '(' .. place)
    end
  end
  return ahead
end
