-- The jobs a member holds, locked in the order everybody locks jobs.
SELECT seq, id, kind, tenant, log, state, token, attempts, max_retries, crashes, started_at
FROM penstock.jobs WHERE holder = $1 ORDER BY seq FOR UPDATE
