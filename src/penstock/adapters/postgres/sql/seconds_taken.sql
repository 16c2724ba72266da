-- How long the newest completed searches of a tenant took on average. See 0005_research.sql.
SELECT avg(finished_at - started_at) FROM (
    SELECT started_at, finished_at FROM penstock.research_searches
    WHERE tenant = $1 AND state = 'completed' AND started_at IS NOT NULL
    ORDER BY finished_at DESC LIMIT $2
) AS newest
