-- A list for each of seq, token, run_at, reason, waits_lane, by seq.
UPDATE penstock.jobs AS j
SET state = 'queued', holder = NULL, started_at = NULL, attempts = j.attempts - 1,
    releases = j.releases + 1, run_at = s.run_at, message = s.reason, waits_lane = s.waits_lane
FROM unnest($1::bigint[], $2::bigint[], $3::float8[], $4::text[], $5::text[])
     AS s (seq, token, run_at, reason, waits_lane)
WHERE j.seq = s.seq AND j.token = s.token AND j.state = 'running'
RETURNING j.seq
