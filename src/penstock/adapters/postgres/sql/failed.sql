-- A list for each of seq, token, started_at, finished_at, error, run_at, record, error_type, by
-- seq; and the limit of the history.
UPDATE penstock.jobs AS j
SET state = 'failed', holder = NULL, started_at = s.started_at, finished_at = s.finished_at,
    error = s.error, error_type = s.error_type,
    history = penstock.with_record(j.history, s.record, $9)
FROM unnest($1::bigint[], $2::bigint[], $3::float8[], $4::float8[], $5::text[], $6::float8[],
            $7::text[], $8::text[])
     AS s (seq, token, started_at, finished_at, error, run_at, record, error_type)
WHERE j.seq = s.seq AND j.token = s.token AND j.state = 'running'
RETURNING j.seq
