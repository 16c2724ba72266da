-- Claimed: the attempt is counted now, and given back if the run turns out not to have started.
UPDATE penstock.jobs
SET state = 'running', ready = 0, token = token + 1, attempts = attempts + 1,
    holder = $2, started_at = $3, waits_lane = NULL
WHERE seq = ANY ($1)
