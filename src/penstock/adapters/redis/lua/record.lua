#!lua
-- needs: base held records
-- Store steps of running jobs whose lease stands: 1 or 0 for each. The rows are the arguments after
-- the first. A row without a result only counts attempts, and leaves one with a result as it is.

local stored = {}
for n, lease in ipairs(ask.leases) do
  stored[n] = stands(lease) and 1 or 0
end
for n, lease in ipairs(ask.leases) do
  if stored[n] == 1 then
    local steps, row = ns .. 'steps:' .. lease.seq, ARGV[1 + n]
    local known = redis.call('HGET', steps, lease.key)
    local counts_only = not string.find(row, '\n', 1, true)
    if not (counts_only and known and string.find(known, '\n', 1, true)) then
      redis.call('HSET', steps, lease.key, row)
      if not counts_only then records.place(lease.seq, lease.token, lease.key) end
    end
  end
end
if ask.event then wake('finished') end
return done(stored)
