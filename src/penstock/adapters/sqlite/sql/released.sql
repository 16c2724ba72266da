-- :batch is [[seq, token, run_at, reason, waits_lane], ...]
UPDATE jobs
SET state = 'queued', holder = NULL, started_at = NULL, attempts = attempts - 1,
    releases = releases + 1, run_at = s.value ->> 2, message = s.value ->> 3,
    waits_lane = s.value ->> 4
FROM json_each(:batch) AS s
WHERE jobs.seq = s.value ->> 0 AND jobs.token = s.value ->> 1 AND jobs.state = 'running'
