-- $1 is [[seq, token, started_at, finished_at, error, run_at, history record], ...], by seq.
UPDATE penstock.jobs AS j
SET state = 'queued', holder = NULL, started_at = NULL, error = (s.v ->> 4)::jsonb,
    run_at = (s.v ->> 5)::float8, progress = 0, message = '',
    history = penstock.with_record(j.history, s.v -> 6, $2)
FROM jsonb_array_elements($1) AS s (v)
WHERE j.seq = (s.v ->> 0)::bigint AND j.token = (s.v ->> 1)::bigint AND j.state = 'running'
RETURNING j.seq
