-- End a search that is under way in this run ($4). See 0005_research.sql.
UPDATE penstock.research_searches SET state = $5, reason = $6, finished_at = $7
WHERE (tenant, task, id, run) = ($1, $2, $3, $4) AND state IN ('queued', 'running')
