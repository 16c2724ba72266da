-- The jobs of a log that are not finished, locked in the order everybody locks jobs: tenant, log.
SELECT seq, id, tenant, log, state FROM penstock.jobs
WHERE tenant = $1 AND log = $2 AND state IN ('queued', 'running')
ORDER BY seq FOR UPDATE
