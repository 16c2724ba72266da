-- :batch is [[seq, id, token, run_at, waits_lane, history record or null], ...]; run_at is null to
-- keep the place in line
UPDATE jobs
SET state = 'queued', holder = NULL, started_at = NULL, attempts = attempts - 1, progress = 0,
    message = '', waits_lane = s.value ->> 4, run_at = coalesce(s.value ->> 3, run_at),
    ready = iif(s.value ->> 3 IS NULL, 1 + (crashes > 0), 0),
    history = iif(s.value ->> 5 IS NULL, history, json_insert(
        iif(json_array_length(history) < :history_limit, history, json_remove(history, '$[1]')),
        '$[#]', json(s.value -> 5)))
FROM json_each(:batch) AS s
WHERE jobs.seq = s.value ->> 0 AND +jobs.id = s.value ->> 1 AND jobs.token = s.value ->> 2
  AND +jobs.holder = :member AND jobs.state = 'running'
