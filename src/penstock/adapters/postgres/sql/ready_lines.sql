-- Lines of these kinds that are due, the longest waiting first: kinds, now, limit.
SELECT DISTINCT ON (first.wake_at, first.lane) first.lane
FROM unnest($1::text[]) AS k (kind) CROSS JOIN LATERAL (
    SELECT l.wake_at, l.lane FROM penstock.lines AS l
    WHERE l.kind = k.kind AND l.wake_at IS NOT NULL AND l.wake_at <= $2
    ORDER BY l.wake_at LIMIT $3) AS first
ORDER BY first.wake_at, first.lane
