-- number, status, seconds the lease is to last. Says the time; nothing when the membership is gone.
UPDATE penstock.processes
SET heartbeat_at = penstock.clock(), lease_until = penstock.clock() + $3, status = $2
WHERE number = $1
RETURNING heartbeat_at
