SELECT seq, lane, band, tenant FROM jobs
WHERE ready > 0 AND ready = 1 AND lane = :lane AND kind = :kind AND band = :band AND since <= :before
ORDER BY turn, seq LIMIT :limit
