DELETE FROM penstock.turns AS t
USING penstock.served AS s
WHERE s.lane = t.lane AND s.band = t.band AND t.last <= s.turn
