-- The jobs of a task that are not finished, locked in the order everybody locks jobs: tenant, task.
SELECT seq, id, tenant, task, state FROM penstock.jobs
WHERE tenant = $1 AND task = $2 AND state IN ('queued', 'running')
ORDER BY seq FOR UPDATE
