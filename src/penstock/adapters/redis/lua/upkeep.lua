#!lua flags=no-writes
-- needs: base
-- What a process looks at twice a second: the other members (number, life, boot, when they were
-- renewed last and for how long that holds), whether any queued job is past its deadline, whether
-- children of cancelled jobs are to be cancelled, and whether jobs were put off at a time which is
-- still to come.

local others = {}
for _, number in ipairs(redis.call('ZRANGE', ns .. 'processes', 0, -1)) do
  if tonumber(number) ~= ask.member then
    others[#others + 1] = redis.call(
      'HMGET', ns .. 'process:' .. number, 'number', 'life', 'boot', 'heartbeat_at', 'lease_until')
  end
end
local overdue = redis.call('ZRANGEBYSCORE', ns .. 'deadlines', '-inf', now, 'LIMIT', 0, 1)
local ahead = redis.call(
  'ZRANGEBYSCORE', ns .. 'put_off', '(' .. exact(now), '+inf', 'LIMIT', 0, 1)
return {exact(now), others, #overdue, redis.call('EXISTS', ns .. 'cascades'), #ahead}
