-- The first process that knows a kind fills in what was unknown at enqueue.
UPDATE jobs
SET timeout = coalesce(timeout, :timeout), max_retries = coalesce(max_retries, :max_retries)
WHERE seq IN (SELECT value FROM json_each(:seqs))
