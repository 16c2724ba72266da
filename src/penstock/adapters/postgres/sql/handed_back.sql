-- A list for each of seq, token, run_at (null: it keeps its place in line), waits_lane, by seq.
UPDATE penstock.jobs AS j
SET state = 'queued', holder = NULL, started_at = NULL, attempts = j.attempts - 1, progress = 0,
    message = '', waits_lane = s.waits_lane, run_at = coalesce(s.run_at, j.run_at),
    ready = CASE WHEN s.run_at IS NOT NULL THEN 0 WHEN j.crashes > 0 THEN 2 ELSE 1 END
FROM unnest($1::bigint[], $2::bigint[], $3::float8[], $4::text[])
     AS s (seq, token, run_at, waits_lane)
WHERE j.seq = s.seq AND j.token = s.token AND j.state = 'running'
RETURNING j.seq
