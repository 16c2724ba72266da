-- $1 is [[seq, token, run_at, reason, waits_lane], ...], by seq.
UPDATE penstock.jobs AS j
SET state = 'queued', holder = NULL, started_at = NULL, attempts = j.attempts - 1,
    releases = j.releases + 1, run_at = (s.v ->> 2)::float8, message = s.v ->> 3,
    waits_lane = s.v ->> 4
FROM jsonb_array_elements($1) AS s (v)
WHERE j.seq = (s.v ->> 0)::bigint AND j.token = (s.v ->> 1)::bigint AND j.state = 'running'
RETURNING j.seq
