-- :batch is [[seq, id, token, started_at, finished_at, error, run_at, history record], ...]
UPDATE jobs
SET state = 'failed', holder = NULL, started_at = s.value ->> 3, finished_at = s.value ->> 4,
    error = s.value ->> 5,
    history = json_insert(
        iif(json_array_length(history) < :history_limit, history, json_remove(history, '$[1]')),
        '$[#]', json(s.value -> 7))
FROM json_each(:batch) AS s
WHERE jobs.seq = s.value ->> 0 AND +jobs.id = s.value ->> 1 AND jobs.token = s.value ->> 2
  AND +jobs.holder = :member AND jobs.state = 'running'
