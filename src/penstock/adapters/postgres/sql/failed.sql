-- $1 is [[seq, token, started_at, finished_at, error, run_at, history record], ...], by seq.
UPDATE penstock.jobs AS j
SET state = 'failed', holder = NULL, started_at = (s.v ->> 2)::float8,
    finished_at = (s.v ->> 3)::float8, error = (s.v ->> 4)::jsonb,
    history = penstock.with_record(j.history, s.v -> 6, $2)
FROM jsonb_array_elements($1) AS s (v)
WHERE j.seq = (s.v ->> 0)::bigint AND j.token = (s.v ->> 1)::bigint AND j.state = 'running'
RETURNING j.seq
