-- Searches of all tenants that are under way, from one ref on. See 0005_research.sql.
SELECT tenant, task, id, number, query, wanted, priority, providers, state, run, queued_at,
       started_at, finished_at, reason
FROM penstock.research_searches
WHERE (tenant, task, id) > ($1, $2, $3) AND state IN ('queued', 'running') AND queued_at < $4
ORDER BY tenant, task, id LIMIT $5
