-- When the next line of these kinds wants to be looked at.
SELECT min(first.wake_at)
FROM unnest($1::text[]) AS k (kind) CROSS JOIN LATERAL (
    SELECT l.wake_at FROM penstock.lines AS l
    WHERE l.kind = k.kind AND l.wake_at IS NOT NULL ORDER BY l.wake_at LIMIT 1) AS first
