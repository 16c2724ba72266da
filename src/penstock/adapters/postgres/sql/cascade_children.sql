-- Some children of cancelled jobs (ids) that are to be cancelled, too, locked: ids, limit.
SELECT j.seq, j.id, j.tenant, j.task, j.state FROM penstock.jobs AS j
WHERE j.parent_id = ANY ($1) AND j.attached AND j.state IN ('queued', 'running')
ORDER BY j.seq LIMIT $2 FOR UPDATE
