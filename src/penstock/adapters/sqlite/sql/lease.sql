-- Claimed: the attempt is counted now, and given back if the run turns out not to have started.
UPDATE jobs
SET state = 'running', ready = 0, token = token + 1, attempts = attempts + 1,
    holder = :member, started_at = :now, waits_lane = NULL
WHERE seq IN (SELECT value FROM json_each(:seqs))
