-- Another run of all unfinished searches of a task. See 0005_research.sql.
UPDATE penstock.research_searches SET run = run + 1, state = 'queued'
WHERE (tenant, task) = ($1, $2) AND state IN ('queued', 'running')
