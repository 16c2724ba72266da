#!lua flags=no-writes
-- needs: base
-- What a process looks at twice a second: the other members (number, life, boot, whether their
-- lease has run out), whether any queued job is past its deadline, and whether children of cancelled
-- jobs are to be cancelled.

local others = {}
for _, number in ipairs(redis.call('ZRANGE', ns .. 'processes', 0, -1)) do
  if tonumber(number) ~= ask.member then
    local lease_until = tonumber(redis.call('ZSCORE', ns .. 'processes', number))
    local known = redis.call('HMGET', ns .. 'process:' .. number, 'life', 'boot')
    others[#others + 1] = {number, known[1], known[2], lease_until < now and 1 or 0}
  end
end
local overdue = redis.call('ZRANGEBYSCORE', ns .. 'deadlines', '-inf', now, 'LIMIT', 0, 1)
return {exact(now), others, #overdue, redis.call('EXISTS', ns .. 'cascades')}
