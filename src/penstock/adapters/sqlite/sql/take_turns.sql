INSERT INTO turns (lane, band, tenant, last) VALUES (:lane, :band, :tenant, :last)
ON CONFLICT (lane, band, tenant) DO UPDATE SET last = excluded.last
