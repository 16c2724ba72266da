#!lua
-- needs: base held signals records
-- Give the oldest signal of a name to a step, which is recorded with its payload, if the lease stands:
-- {0} if it does not, {1} if there is none, {1, payload}. The row without result is the second
-- argument.

if not stands(ask.lease) then return {0} end
local payload = signals.take(ask.lease.seq, ask.name, ask.key)
if not payload then return {1} end
redis.call('HSET', ns .. 'steps:' .. ask.lease.seq, ask.key, ARGV[2] .. '\n' .. payload)
records.place(ask.lease.seq, ask.lease.token, ask.key)
return done({1, payload})
