-- :batch is [[seq, token, fraction, message], ...]
UPDATE jobs SET progress = s.value ->> 2, message = s.value ->> 3
FROM json_each(:batch) AS s
WHERE jobs.seq = s.value ->> 0 AND jobs.token = s.value ->> 1 AND jobs.state = 'running'
