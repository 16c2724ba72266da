-- A chunk of the finished jobs that are past the retention: before, limit.
DELETE FROM penstock.jobs
WHERE seq = ANY (ARRAY(
    SELECT seq FROM penstock.jobs
    WHERE state IN ('completed', 'cancelled') AND finished_at < $1 AND holder IS NULL
    ORDER BY finished_at LIMIT $2 FOR UPDATE SKIP LOCKED))
RETURNING tenant, log
