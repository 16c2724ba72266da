-- How many jobs stand before these (seqs, lanes, bands, turns) in their lane's lines, counted up
-- to a limit for each kind.
SELECT s.seq, sum(before.count)::bigint
FROM unnest($1::bigint[], $2::text[], $3::integer[], $4::float8[]) AS s (seq, lane, band, turn)
CROSS JOIN LATERAL (
    SELECT count(*) FROM (SELECT 1) AS one
    CROSS JOIN LATERAL (
        SELECT h.seq FROM penstock.lines AS l
        CROSS JOIN (VALUES (1), (2)) AS r (ready)
        CROSS JOIN LATERAL (
            SELECT j.seq FROM penstock.jobs AS j
            WHERE j.ready > 0 AND j.ready = r.ready AND j.lane = s.lane AND j.kind = l.kind
              AND (j.band, j.turn, j.seq) < (s.band, s.turn, s.seq)
            LIMIT $5) AS h
        WHERE l.lane = s.lane) AS heads
) AS before
GROUP BY s.seq
