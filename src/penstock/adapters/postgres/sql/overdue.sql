-- Queued jobs whose deadline has passed: now, error, record, limit of the history, limit.
UPDATE penstock.jobs
SET state = 'failed', ready = 0, finished_at = $1, error = $2,
    history = penstock.with_record(history, $3, $4)
WHERE seq = ANY (ARRAY(
    SELECT seq FROM penstock.jobs
    WHERE state = 'queued' AND deadline IS NOT NULL AND deadline <= $1
    ORDER BY deadline LIMIT $5 FOR UPDATE SKIP LOCKED))
RETURNING id, tenant, task
