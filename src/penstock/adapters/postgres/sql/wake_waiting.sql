-- Lines that wait for slots of these lanes ($1, and $2 how many are free in each).
UPDATE penstock.lines AS l SET wake_at = 0, waits_for = NULL
FROM (
    SELECT w.lane, w.kind
    FROM unnest($1::text[], $2::integer[]) AS f (lane, count)
    CROSS JOIN (SELECT DISTINCT unnest(kinds) AS kind FROM penstock.processes) AS k
    CROSS JOIN LATERAL (
        SELECT o.lane, o.kind FROM penstock.lines AS o
        WHERE o.waits_for = f.lane AND o.kind = k.kind ORDER BY o.since LIMIT f.count) AS w
    ORDER BY w.lane, w.kind
) AS woken
WHERE l.lane = woken.lane AND l.kind = woken.kind
RETURNING l.lane, l.kind
