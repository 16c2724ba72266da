-- :picked is [[lane, band, turn], ...]
INSERT INTO served (lane, band, turn)
SELECT value ->> 0, value ->> 1, max(value ->> 2) FROM json_each(:picked) GROUP BY 1, 2
ON CONFLICT (lane, band) DO UPDATE SET turn = max(turn, excluded.turn)
