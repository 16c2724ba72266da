-- Another run of a search, if it is unfinished and $4 is its run. See 0005_research.sql.
UPDATE penstock.research_searches SET run = run + 1, state = 'queued'
WHERE (tenant, task, id, run) = ($1, $2, $3, $4) AND state IN ('queued', 'running')
RETURNING tenant, task, id, number, query, wanted, priority, providers, state, run, queued_at,
          started_at, finished_at, reason
