-- Jobs of each kind and state (of a tenant, or of all: NULL), and when the first was enqueued.
SELECT kind, state, count(*), min(enqueued_at) FROM penstock.jobs
WHERE $1::text IS NULL OR tenant = $1
GROUP BY kind, state
