-- Memberships of worker processes. See 0001_jobs.sql.

-- name: renew
UPDATE processes SET heartbeat_at = :now, lease_until = :lease_until, status = :status
WHERE number = :member AND id = :id
