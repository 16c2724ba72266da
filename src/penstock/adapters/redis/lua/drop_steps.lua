#!lua flags=allow-oom
-- needs: base held
-- Delete steps of a running job, if its lease stands: 1 or 0.

if not stands(ask.lease) then return 0 end
many('HDEL', ns .. 'steps:' .. ask.lease.seq, ask.keys)
return done(1)
