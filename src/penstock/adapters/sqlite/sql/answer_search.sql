-- Keep what a provider said to a search, in place of what it said before, if the search is under
-- way in this run. See 0004_research.sql.
INSERT INTO research_answers
    (tenant, task, search, provider, skipped, done, next, error, at, findings)
SELECT tenant, task, id, :provider, :skipped, :done, :next, :error, :at, :findings
FROM research_searches
WHERE (tenant, task, id, run) = (:tenant, :task, :search, :run)
  AND state IN ('queued', 'running')
ON CONFLICT (tenant, task, search, provider) DO UPDATE
SET skipped = excluded.skipped, done = excluded.done, next = excluded.next,
    error = excluded.error, at = excluded.at, findings = excluded.findings
