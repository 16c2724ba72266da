-- The first in the lines of lanes: lanes, how many of each, kinds, and whether one job with a
-- crash on its record may be among them. A row is the lane's number, band, turn and a lease.
SELECT w.n, w.band, w.turn, j.seq, j.id, j.kind, j.tenant, j.payload, j.priority, j.lane, j.key,
       j.log, j.parent_id, j.enqueued_at, j.run_at, j.deadline, j.timeout, j.max_retries,
       j.attempts + 1, j.crashes, j.releases, j.token + 1,
       '[' || array_to_string(j.history, ',') || ']', j.trace, 0.0::float8, 0.0::float8
FROM (
    SELECT l.n, head.ready, head.band, head.turn, head.seq
    FROM unnest($1::text[], $2::integer[]) WITH ORDINALITY AS l (lane, most, n)
    CROSS JOIN (SELECT 1 AS ready UNION ALL SELECT 2 WHERE $4) AS r
    CROSS JOIN LATERAL (
        SELECT r.ready, first.band, first.turn, first.seq
        FROM unnest($3::text[]) AS k (kind) CROSS JOIN LATERAL (
            SELECT o.band, o.turn, o.seq FROM penstock.jobs AS o
            WHERE o.ready > 0 AND o.ready = r.ready AND o.lane = l.lane AND o.kind = k.kind
            ORDER BY o.band, o.turn, o.seq
            LIMIT CASE WHEN r.ready = 2 THEN 1 ELSE l.most END
            FOR UPDATE SKIP LOCKED) AS first
        ORDER BY first.band, first.turn, first.seq
        LIMIT CASE WHEN r.ready = 2 THEN 1 ELSE l.most END) AS head
) AS w
JOIN penstock.jobs AS j ON j.seq = w.seq
ORDER BY w.n, w.ready DESC, w.band, w.turn, w.seq
