INSERT INTO processes (id, host, pid, boot, life, kinds, max_workers, joined_at, heartbeat_at, lease_until)
VALUES (:id, :host, :pid, :boot, :life, :kinds, :max_workers, :now, :now, :lease_until)
RETURNING number
