-- :batch is [[seq, token], ...]
UPDATE jobs SET holder = NULL
FROM json_each(:batch) AS s
WHERE jobs.seq = s.value ->> 0 AND jobs.token = s.value ->> 1 AND jobs.state = 'cancelled'
