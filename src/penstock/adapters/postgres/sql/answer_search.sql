-- Keep what a provider said to a search, in place of what it said before, if the search is under
-- way in this run ($4). Whoever gives it another run waits for this, or this for them. See
-- 0005_research.sql.
WITH mine AS (
    SELECT tenant, task, id FROM penstock.research_searches
    WHERE (tenant, task, id, run) = ($1, $2, $3, $4) AND state IN ('queued', 'running')
    FOR SHARE
)
INSERT INTO penstock.research_answers
    (tenant, task, search, provider, skipped, done, next, error, at, findings)
SELECT tenant, task, id, $5::text, $6::integer, $7::boolean, $8::text, $9::text, $10::float8,
       $11::text
FROM mine
ON CONFLICT (tenant, task, search, provider) DO UPDATE
SET skipped = excluded.skipped, done = excluded.done, next = excluded.next,
    error = excluded.error, at = excluded.at, findings = excluded.findings
