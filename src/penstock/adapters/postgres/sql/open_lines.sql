-- Lines that jobs of a kind ($2) in a transaction still open are to join ($1: lanes). Were they
-- made in that transaction, everybody else who joins them would have to wait for its end.
INSERT INTO penstock.lines (lane, kind, wake_at, since)
SELECT l.lane, $2, penstock.clock() + 0.1, penstock.clock()
FROM unnest($1::text[]) AS l (lane) WHERE l.lane NOT IN ('', '?')
ON CONFLICT DO NOTHING
