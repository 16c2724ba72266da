-- How long the newest completed searches of a tenant took on average. See 0004_research.sql.
SELECT avg(finished_at - started_at) FROM (
    SELECT started_at, finished_at FROM research_searches
    WHERE tenant = :tenant AND state = 'completed' AND started_at IS NOT NULL
    ORDER BY finished_at DESC LIMIT :last
)
