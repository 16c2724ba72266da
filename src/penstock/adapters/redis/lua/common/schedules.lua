-- Schedules that are rows: see base.lua. One that is to be written is {key, name, was, row, next_at,
-- counted_at}; it is paused if it has no next_at.

local schedules = {}

-- Whether the row is the one that the change began with; '': there was none.
function schedules.is(one)
  local row = redis.call('HGET', ns .. 'schedule_rows', one.key)
  return (row and string.match(row, '^[^ ]*') or '') == one.was
end

function schedules.put(one)
  redis.call('HSET', ns .. 'schedule_rows', one.key, one.row)
  redis.call('ZADD', ns .. 'schedules', 0, one.key)
  if one.next_at then
    redis.call('ZADD', ns .. 'schedule_next', exact(one.next_at), one.key)
    redis.call('ZADD', ns .. 'schedule_counted', exact(one.counted_at), one.key)
  else
    redis.call('ZREM', ns .. 'schedule_next', one.key)
    redis.call('ZREM', ns .. 'schedule_counted', one.key)
  end
end
