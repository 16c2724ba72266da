-- Searches of all tenants that are under way, from one ref on. See 0004_research.sql.
SELECT tenant, task, id, number, query, wanted, priority, providers, state, run, queued_at,
       started_at, finished_at, reason
FROM research_searches
WHERE (tenant, task, id) > (:tenant, :task, :search)
  AND state IN ('queued', 'running') AND queued_at < :before
ORDER BY tenant, task, id LIMIT :limit
