-- Jobs of each kind and state, and when the first of them was enqueued.
SELECT kind, state, count(*), min(enqueued_at) FROM jobs
WHERE :tenant IS NULL OR tenant = :tenant
GROUP BY kind, state
