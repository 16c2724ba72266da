-- Jobs waiting for a retry while their last run still occupies a thread: not yet.
UPDATE penstock.jobs AS j SET run_at = greatest(j.run_at, $4), ready = 0
FROM unnest($1::bigint[], $2::text[], $3::bigint[]) AS s (seq, id, token)
WHERE j.seq = s.seq AND j.id IS NOT DISTINCT FROM s.id AND j.token = s.token
  AND j.state = 'queued'
