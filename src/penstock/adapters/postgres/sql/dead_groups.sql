-- Dead letters (of a tenant, or of all: NULL) by kind and type of error: how many, from when to when,
-- and the newest of each; at most so many groups.
WITH dead AS (
    SELECT seq, kind, coalesce(error_type, '') AS error_type, finished_at FROM penstock.jobs
    WHERE state = 'failed' AND ($1::text IS NULL OR tenant = $1)
), groups AS (
    SELECT kind, error_type, count(*) AS count, min(finished_at) AS first_at,
           max(finished_at) AS last_at
    FROM dead GROUP BY kind, error_type
    ORDER BY count DESC, kind, error_type LIMIT $2
), newest AS (
    SELECT DISTINCT ON (kind, error_type) kind, error_type, seq FROM dead
    ORDER BY kind, error_type, finished_at DESC, seq DESC
)
SELECT g.kind, g.error_type, g.count, g.first_at, g.last_at, j.error, j.id
FROM groups AS g
JOIN newest AS n ON n.kind = g.kind AND n.error_type = g.error_type
JOIN penstock.jobs AS j ON j.seq = n.seq
ORDER BY g.count DESC, g.kind, g.error_type
