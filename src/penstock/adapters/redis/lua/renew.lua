#!lua flags=allow-oom
-- needs: base lines jobs
-- Extend every lease of a member; 0 when its membership has lapsed.
-- `holds` are jobs waiting for a retry while their last run still occupies a thread: not yet.
-- (Whoever is no member says so again when it is.)

local process = ns .. 'process:' .. ask.member
local lease_until = now + ask.lease_seconds
local renewed = redis.call('HGET', process, 'life') == ask.life and 1 or 0
if renewed == 1 then
  redis.call('HSET', process, 'heartbeat_at', now, 'lease_until', lease_until, 'status', ask.status)
  redis.call('ZADD', ns .. 'processes', lease_until, ask.member)
end
for _, hold in ipairs(renewed == 1 and ask.holds or {}) do
  local row = jobs.load(hold.seq)
  if row and row.state == 'queued' and row.id == hold.id and tonumber(row.token) == hold.token then
    jobs.step_aside(row)
    jobs.save(row, {run_at = math.max(tonumber(row.run_at), lease_until)})
    jobs.schedule(row, now)
  end
end
return done(renewed)
