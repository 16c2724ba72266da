-- :batch is [[seq, id, token, fraction, message], ...]
UPDATE jobs SET progress = s.value ->> 3, message = s.value ->> 4
FROM json_each(:batch) AS s
WHERE jobs.seq = s.value ->> 0 AND +jobs.id = s.value ->> 1 AND jobs.token = s.value ->> 2
  AND +jobs.holder = :member AND jobs.state = 'running'
