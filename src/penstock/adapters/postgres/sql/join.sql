INSERT INTO penstock.processes
    (id, host, pid, boot, life, kinds, max_workers, joined_at, heartbeat_at, lease_until)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $8, $9)
RETURNING number
