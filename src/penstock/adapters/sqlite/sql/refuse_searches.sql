-- Another run of all unfinished searches of a task. See 0004_research.sql.
UPDATE research_searches SET run = run + 1, state = 'queued'
WHERE (tenant, task) = (:tenant, :task) AND state IN ('queued', 'running')
