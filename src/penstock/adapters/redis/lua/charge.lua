#!lua flags=allow-oom
-- needs: base
-- Enter charges in the ledger; see penstock.ports.ledger. Each is {id, reserved, void, at, day, tenant, task,
-- job, kind, lane, model, tokens, input, output, cost}; a cost of -1 is unknown.
-- Allowed when memory is full: what was spent is to be known.

local ID, RESERVED, VOID, AT, DAY, TENANT = 1, 2, 3, 4, 5, 6
local KIND, LANE, MODEL, TOKENS, INPUT, OUTPUT, COST = 9, 10, 11, 12, 13, 14, 15

local known = {}
for n, one in ipairs(ask.charges) do
  local text = redis.call('HGET', ns .. 'charges', one[ID])
  known[n] = text and cjson.decode(text)
end

local sums, days = {}, {}

local function add(one, sign)
  local name = table.concat({one[TENANT], one[KIND], one[LANE], one[MODEL]}, '\n')
  local key = pair(one[DAY], name)
  local sum = sums[key] or {day = one[DAY], name = name, figures = {0, 0, 0, 0, 0, 0, 0}}
  sums[key], days[one[DAY]] = sum, true
  local figures = {
    1, one[TOKENS], one[INPUT], one[OUTPUT], math.max(0, one[COST]), one[COST] < 0 and 1 or 0,
    one[RESERVED] and 1 or 0}
  for n, figure in ipairs(figures) do sum.figures[n] = sum.figures[n] + sign * figure end
end

local function enter(one)
  add(one, 1)
  redis.call('HSET', ns .. 'charges', one[ID], cjson.encode(one))
  redis.call('ZADD', ns .. 'charged', exact(one[AT]), one[ID])
end

for n, one in ipairs(ask.charges) do
  local before = known[n]
  if not before then
    if not one[VOID] then enter(one) end
  elseif before[RESERVED] and not one[RESERVED] then
    -- On the day that it was reserved on.
    add(before, -1)
    if one[VOID] then
      redis.call('HDEL', ns .. 'charges', one[ID])
      redis.call('ZREM', ns .. 'charged', one[ID])
    else
      before[RESERVED] = false
      if one[MODEL] ~= '' then before[MODEL] = one[MODEL] end
      for part = TOKENS, COST do before[part] = one[part] end
      enter(before)
    end
  end
end

local spare = redis.call('ZCARD', ns .. 'charged') - ask.most
if spare > 0 then
  local oldest = redis.call('ZRANGE', ns .. 'charged', 0, math.min(spare, 1000) - 1)
  many('HDEL', ns .. 'charges', oldest)
  many('ZREM', ns .. 'charged', oldest)
end

for _, sum in pairs(sums) do
  for n, figure in ipairs(sum.figures) do
    if figure ~= 0 then
      local key, field = ns .. 'usage:' .. sum.day, pair(sum.name, n)
      redis.call('HINCRBY', key, field, string.format('%.0f', figure))
    end
  end
end
for day in pairs(days) do redis.call('ZADD', ns .. 'usage_days', day, day) end
return done(1)
