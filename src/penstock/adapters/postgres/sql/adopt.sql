-- The first process that knows a kind fills in what was unknown at enqueue.
UPDATE penstock.jobs
SET timeout = coalesce(timeout, $2), max_retries = coalesce(max_retries, $3)
WHERE seq = ANY ($1)
