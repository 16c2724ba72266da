INSERT INTO served (lane, band, turn) VALUES (:lane, :band, :turn)
ON CONFLICT (lane, band) DO UPDATE SET turn = max(turn, excluded.turn)
