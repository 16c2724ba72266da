-- Jobs waiting for a retry while their last run still occupies a thread: not yet.
UPDATE penstock.jobs AS j SET run_at = greatest(j.run_at, $3), ready = 0
FROM unnest($1::bigint[], $2::bigint[]) AS s (seq, token)
WHERE j.seq = s.seq AND j.token = s.token AND j.state = 'queued'
