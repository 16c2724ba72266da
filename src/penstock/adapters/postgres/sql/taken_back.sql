-- A job whose holder is gone: seq, state, ready, attempts, crashes, error, its type, finished_at,
-- record, and the limit of the history.
UPDATE penstock.jobs
SET state = $2, ready = $3, holder = NULL, token = token + 1, attempts = $4, crashes = $5,
    error = coalesce($6, error), error_type = coalesce($7, error_type),
    progress = CASE WHEN $2 = 'queued' THEN 0 ELSE progress END,
    started_at = CASE WHEN $2 = 'queued' THEN NULL ELSE started_at END, finished_at = $8,
    history = CASE WHEN $9::text IS NULL THEN history
                   ELSE penstock.with_record(history, $9, $10) END
WHERE seq = $1
