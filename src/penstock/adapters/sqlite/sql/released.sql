-- :batch is [[seq, id, token, run_at, reason, waits_lane, history record or null], ...]
UPDATE jobs
SET state = 'queued', holder = NULL, started_at = NULL, attempts = attempts - 1,
    releases = releases + 1, run_at = s.value ->> 3, message = s.value ->> 4,
    waits_lane = s.value ->> 5,
    history = iif(s.value ->> 6 IS NULL, history, json_insert(
        iif(json_array_length(history) < :history_limit, history, json_remove(history, '$[1]')),
        '$[#]', json(s.value -> 6)))
FROM json_each(:batch) AS s
WHERE jobs.seq = s.value ->> 0 AND +jobs.id = s.value ->> 1 AND jobs.token = s.value ->> 2
  AND +jobs.holder = :member AND jobs.state = 'running'
