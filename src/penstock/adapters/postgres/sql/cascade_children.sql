-- Some children of cancelled jobs (ids) that are to be cancelled, too, locked in the order everybody
-- locks jobs: ids, limit. They are picked first and sorted after, lest they be looked for by seq.
SELECT seq, id, tenant, log, state FROM penstock.jobs
WHERE seq = ANY (ARRAY(
    SELECT j.seq FROM penstock.jobs AS j
    WHERE j.parent_id = ANY ($1) AND j.attached AND j.state IN ('queued', 'running') LIMIT $2))
  AND state IN ('queued', 'running')
ORDER BY seq FOR UPDATE
