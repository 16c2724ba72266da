-- Places in line: turns, served. See sql/tables/jobs.sql.

-- name: place
-- Give queued jobs their place in line: seqs, lanes, bands, turns; now.
UPDATE penstock.jobs AS j
SET ready = CASE WHEN j.crashes > 0 THEN 2 ELSE 1 END, since = $5, lane = s.lane, band = s.band,
    turn = s.turn
FROM unnest($1::bigint[], $2::text[], $3::integer[], $4::float8[]) AS s (seq, lane, band, turn)
WHERE j.seq = s.seq AND j.state = 'queued'
