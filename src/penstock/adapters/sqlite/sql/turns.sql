-- Places in line: turns, served. See sql/tables/jobs.sql.

-- name: last_turn
SELECT max(coalesce((SELECT last FROM turns WHERE lane = :lane AND band = :band AND tenant = :tenant), 0),
           coalesce((SELECT turn FROM served WHERE lane = :lane AND band = :band), 0))

-- name: take_turns
INSERT INTO turns (lane, band, tenant, last) VALUES (:lane, :band, :tenant, :last)
ON CONFLICT (lane, band, tenant) DO UPDATE SET last = excluded.last

-- name: serve
INSERT INTO served (lane, band, turn) VALUES (:lane, :band, :turn)
ON CONFLICT (lane, band) DO UPDATE SET turn = max(turn, excluded.turn)

-- name: place
-- Give queued jobs their place in line. :batch is [[seq, lane, band, turn], ...]
UPDATE jobs
SET ready = 1 + (crashes > 0), since = :now, lane = s.value ->> 1, band = s.value ->> 2,
    turn = s.value ->> 3
FROM json_each(:batch) AS s
WHERE jobs.seq = s.value ->> 0 AND jobs.state = 'queued'
