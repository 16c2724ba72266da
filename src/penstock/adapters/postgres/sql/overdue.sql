-- Queued jobs whose deadline has passed: now, error, its type, record, limit of the history, limit.
UPDATE penstock.jobs
SET state = 'failed', ready = 0, finished_at = $1, error = $2, error_type = $3,
    history = penstock.with_record(history, $4, $5)
WHERE seq = ANY (ARRAY(
    SELECT seq FROM penstock.jobs
    WHERE state = 'queued' AND deadline IS NOT NULL AND deadline <= $1
    ORDER BY deadline LIMIT $6 FOR UPDATE SKIP LOCKED))
RETURNING id, tenant, log
