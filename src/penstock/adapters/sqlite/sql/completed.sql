-- A plus keeps SQLite from the column's index: jobs are found by seq.
-- :batch is [[seq, id, token, started_at, finished_at, result], ...]
UPDATE jobs
SET state = 'completed', holder = NULL, started_at = s.value ->> 3, finished_at = s.value ->> 4,
    result = s.value ->> 5, error = NULL, progress = 1
FROM json_each(:batch) AS s
WHERE jobs.seq = s.value ->> 0 AND +jobs.id = s.value ->> 1 AND jobs.token = s.value ->> 2
  AND +jobs.holder = :member AND jobs.state = 'running'
