-- A list for each of seq, id, token, run_at, reason, waits_lane, by seq;
-- and who holds them.
UPDATE penstock.jobs AS j
SET state = 'queued', holder = NULL, started_at = NULL, attempts = j.attempts - 1,
    releases = j.releases + 1, run_at = s.run_at, message = s.reason, waits_lane = s.waits_lane
FROM unnest($1::bigint[], $2::text[], $3::bigint[], $4::float8[], $5::text[], $6::text[])
     AS s (seq, id, token, run_at, reason, waits_lane)
WHERE j.seq = s.seq AND j.id IS NOT DISTINCT FROM s.id AND j.token = s.token
  AND j.holder IS NOT DISTINCT FROM $7 AND j.state = 'running'
RETURNING j.seq
