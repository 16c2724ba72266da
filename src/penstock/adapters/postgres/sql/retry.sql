-- A list for each of seq, id, token, started_at, finished_at, error, run_at, record, error_type, by
-- seq; the limit of the history; and who holds them.
UPDATE penstock.jobs AS j
SET state = 'queued', holder = NULL, started_at = NULL, error = s.error,
    error_type = s.error_type, run_at = s.run_at, progress = 0, message = '',
    history = penstock.with_record(j.history, s.record, $10)
FROM unnest($1::bigint[], $2::text[], $3::bigint[], $4::float8[], $5::float8[], $6::text[],
            $7::float8[], $8::text[], $9::text[])
     AS s (seq, id, token, started_at, finished_at, error, run_at, record, error_type)
WHERE j.seq = s.seq AND j.id IS NOT DISTINCT FROM s.id AND j.token = s.token
  AND j.holder IS NOT DISTINCT FROM $11 AND j.state = 'running'
RETURNING j.seq
