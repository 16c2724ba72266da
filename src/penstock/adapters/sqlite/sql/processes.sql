-- Memberships of worker processes. See 0001_jobs.sql.

-- name: join
INSERT INTO processes (id, host, pid, boot, life, kinds, max_workers, joined_at, heartbeat_at, lease_until)
VALUES (:id, :host, :pid, :boot, :life, :kinds, :max_workers, :now, :now, :lease_until)
RETURNING number

-- name: renew
UPDATE processes SET heartbeat_at = :now, lease_until = :lease_until, status = :status
WHERE number = :member AND id = :id
