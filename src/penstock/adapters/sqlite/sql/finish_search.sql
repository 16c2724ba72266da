-- End a search that is under way in this run. See 0004_research.sql.
UPDATE research_searches SET state = :state, reason = :reason, finished_at = :now
WHERE (tenant, task, id, run) = (:tenant, :task, :search, :run)
  AND state IN ('queued', 'running')
