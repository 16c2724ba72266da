#!lua flags=allow-oom
-- needs: base held signals records
-- Delete steps of a running job, if its lease stands, and give back the signals that they have taken:
-- 1 or 0.

if not stands(ask.lease) then return 0 end
many('HDEL', ns .. 'steps:' .. ask.lease.seq, ask.keys)
many('ZREM', records.order(ask.lease.seq), ask.keys)
local dropped = {}
for _, key in ipairs(ask.keys) do dropped[key] = true end
signals.untake(ask.lease.seq, dropped)
return done(1)
