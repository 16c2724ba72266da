-- Scheduled jobs whose time has come and that nobody else is just moving: now, limit.
SELECT seq, lane, band, tenant FROM penstock.jobs
WHERE state = 'queued' AND ready = 0 AND run_at <= $1 ORDER BY run_at, seq LIMIT $2
FOR UPDATE SKIP LOCKED
