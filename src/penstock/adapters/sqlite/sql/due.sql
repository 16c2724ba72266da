SELECT seq, lane, band, tenant FROM jobs
WHERE state = 'queued' AND ready = 0 AND run_at <= :now ORDER BY run_at LIMIT :limit
