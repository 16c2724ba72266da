-- Memberships of worker processes. See 0001_jobs.sql.

-- name: renew
-- number, id, status, seconds the lease is to last. Says the time; nothing when the membership is gone.
UPDATE penstock.processes
SET heartbeat_at = penstock.clock(), lease_until = penstock.clock() + $4, status = $3
WHERE number = $1 AND id = $2
RETURNING heartbeat_at
