-- Jobs waiting for a retry while their last run still occupies a thread: not yet.
UPDATE jobs SET run_at = max(run_at, :until), ready = 0
FROM json_each(:batch) AS s
WHERE jobs.seq = s.value ->> 0 AND +jobs.id = s.value ->> 1 AND jobs.token = s.value ->> 2
  AND jobs.state = 'queued'
