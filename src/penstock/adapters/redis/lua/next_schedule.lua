#!lua flags=no-writes
-- needs: base
-- When the next schedule is due; nothing: there is none. '0': one was counted while the clock was
-- ahead by more than a second.

local last = redis.call('ZRANGE', ns .. 'schedule_counted', -1, -1, 'WITHSCORES')
if last[2] and tonumber(last[2]) > ask.now + 1 then return '0' end
return redis.call('ZRANGE', ns .. 'schedule_next', 0, 0, 'WITHSCORES')[2]
