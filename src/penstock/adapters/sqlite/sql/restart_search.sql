-- Another run of a search, if it is unfinished and this is its run. See 0004_research.sql.
UPDATE research_searches SET run = run + 1, state = 'queued'
WHERE (tenant, task, id, run) = (:tenant, :task, :search, :run)
  AND state IN ('queued', 'running')
RETURNING tenant, task, id, number, query, wanted, priority, providers, state, run, queued_at,
          started_at, finished_at, reason
