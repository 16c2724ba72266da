-- Dead letters by kind and type of error: how many, from when to when, and the newest of each. Twice
-- through them: beside the one max() of a query, and no other, SQLite gives the row it is from.
WITH dead AS (
    SELECT seq, kind, coalesce(error ->> 'type', '') AS error_type, finished_at FROM jobs
    WHERE state = 'failed' AND (:tenant IS NULL OR tenant = :tenant)
), groups AS (
    SELECT kind, error_type, count(*) AS count, min(finished_at) AS first_at FROM dead
    GROUP BY kind, error_type
    ORDER BY count DESC, kind, error_type LIMIT :most
), newest AS (
    SELECT kind, error_type, max(finished_at) AS last_at, seq FROM dead GROUP BY kind, error_type
)
SELECT g.kind, g.error_type, g.count, g.first_at, n.last_at,
       coalesce(jobs.error ->> 'message', ''), jobs.id
FROM groups AS g
JOIN newest AS n ON n.kind = g.kind AND n.error_type = g.error_type
JOIN jobs ON jobs.seq = n.seq
ORDER BY g.count DESC, g.kind, g.error_type
