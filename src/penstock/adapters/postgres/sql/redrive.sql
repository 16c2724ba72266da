-- Dead letters are queued again: seqs; now; a record for their history, and its limit.
UPDATE penstock.jobs
SET state = 'queued', ready = 0, run_at = $2, attempts = 0, crashes = 0, releases = 0,
    token = token + 1, started_at = NULL, finished_at = NULL, progress = 0, message = '',
    deadline = CASE WHEN deadline > $2 THEN deadline END,
    history = penstock.with_record(history, $3, $4)
WHERE seq = ANY ($1)
