-- A job has spent no attempt after all, and is first in its line again: now, seq, token.
UPDATE penstock.jobs
SET attempts = attempts - 1, run_at = $1, state = 'queued', finished_at = NULL,
    ready = CASE WHEN crashes > 0 THEN 2 ELSE 1 END
WHERE seq = $2 AND token = $3 AND state IN ('queued', 'failed') AND attempts > 0
RETURNING tenant, log, id, kind, attempts
