-- :batch is [[seq, id, token, fraction or null, message, lines to log], ...]
UPDATE jobs
SET progress = coalesce(s.value ->> 3, progress),
    message = iif(s.value ->> 3 IS NULL, message, s.value ->> 4),
    lines = iif(s.value ->> 5 = '', lines, substr(coalesce(lines, '') || (s.value ->> 5), -:log_limit))
FROM json_each(:batch) AS s
WHERE jobs.seq = s.value ->> 0 AND +jobs.id = s.value ->> 1 AND jobs.token = s.value ->> 2
  AND +jobs.holder = :member AND jobs.state = 'running'
