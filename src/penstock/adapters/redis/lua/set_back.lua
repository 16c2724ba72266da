#!lua flags=allow-oom
-- needs: base lines jobs lane_state usual_amounts amounts learnt breaker lanes
-- The clock was set back: mend the lanes and lines that were written at a time which is still to
-- come. Some at a time; returns how many there were.

local CHUNK = 100

local mended = 0
local after = '(' .. exact(now)
for _, name in ipairs(redis.call('ZRANGEBYSCORE', ns .. 'lanes', after, '+inf', 'LIMIT', 0, CHUNK)) do
  lanes.load(name)
  redis.call('ZADD', ns .. 'lanes', now, name)
  mended = mended + 1
end
for _, kind in ipairs(redis.call('SMEMBERS', ns .. 'lined')) do
  local key = ns .. 'lines:' .. kind
  for _, name in ipairs(redis.call('ZRANGEBYSCORE', key, after, '+inf', 'LIMIT', 0, CHUNK)) do
    redis.call('ZADD', key, now, name)
    if redis.call('ZSCORE', ns .. 'looks:' .. kind, name) then lines.look_at(name, kind, 0) end
    mended = mended + 1
  end
end
if mended > 0 then wake('ready') end
return done(mended)
