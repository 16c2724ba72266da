-- A list for each of seq, id, token, run_at (null: it keeps its place in line), waits_lane, record
-- (or null), by seq; the limit of the history; and who holds them.
UPDATE penstock.jobs AS j
SET state = 'queued', holder = NULL, started_at = NULL, attempts = j.attempts - 1, progress = 0,
    message = '', waits_lane = s.waits_lane, run_at = coalesce(s.run_at, j.run_at),
    ready = CASE WHEN s.run_at IS NOT NULL THEN 0 WHEN j.crashes > 0 THEN 2 ELSE 1 END,
    history = CASE WHEN s.record IS NULL THEN j.history
                   ELSE penstock.with_record(j.history, s.record, $7) END
FROM unnest($1::bigint[], $2::text[], $3::bigint[], $4::float8[], $5::text[], $6::text[])
     AS s (seq, id, token, run_at, waits_lane, record)
WHERE j.seq = s.seq AND j.id IS NOT DISTINCT FROM s.id AND j.token = s.token
  AND j.holder IS NOT DISTINCT FROM $8 AND j.state = 'running'
RETURNING j.seq
