-- A list for each of seq, id, token, run_at, reason, waits_lane, record (or null), by seq;
-- the limit of the history; and who holds them.
UPDATE penstock.jobs AS j
SET state = 'queued', holder = NULL, started_at = NULL, attempts = j.attempts - 1,
    releases = j.releases + 1, run_at = s.run_at, message = s.reason, waits_lane = s.waits_lane,
    history = CASE WHEN s.record IS NULL THEN j.history
                   ELSE penstock.with_record(j.history, s.record, $8) END
FROM unnest($1::bigint[], $2::text[], $3::bigint[], $4::float8[], $5::text[], $6::text[],
            $7::text[])
     AS s (seq, id, token, run_at, reason, waits_lane, record)
WHERE j.seq = s.seq AND j.id IS NOT DISTINCT FROM s.id AND j.token = s.token
  AND j.holder IS NOT DISTINCT FROM $9 AND j.state = 'running'
RETURNING j.seq
