-- :batch is [[seq, id, token], ...]
UPDATE jobs SET holder = NULL
FROM json_each(:batch) AS s
WHERE jobs.seq = s.value ->> 0 AND +jobs.id = s.value ->> 1 AND jobs.token = s.value ->> 2
  AND +jobs.holder = :member AND jobs.state = 'cancelled'
