-- $1 is [[seq, token, run_at, waits_lane], ...], by seq; run_at null to keep the place in line.
UPDATE penstock.jobs AS j
SET state = 'queued', holder = NULL, started_at = NULL, attempts = j.attempts - 1, progress = 0,
    message = '', waits_lane = s.v ->> 3, run_at = coalesce((s.v ->> 2)::float8, j.run_at),
    ready = CASE WHEN s.v ->> 2 IS NOT NULL THEN 0 WHEN j.crashes > 0 THEN 2 ELSE 1 END
FROM jsonb_array_elements($1) AS s (v)
WHERE j.seq = (s.v ->> 0)::bigint AND j.token = (s.v ->> 1)::bigint AND j.state = 'running'
RETURNING j.seq
