#!lua flags=no-writes
-- needs: base
-- The jobs held by this member that have been cancelled.

if redis.call('HGET', ns .. 'process:' .. ask.member, 'life') ~= ask.life then return {} end
return redis.call('SMEMBERS', ns .. 'stopping:' .. ask.member)
