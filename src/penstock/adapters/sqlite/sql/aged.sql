-- Among the first in line, those that have waited long.
SELECT seq, lane, band, tenant FROM (
    SELECT seq, lane, band, tenant, since FROM jobs
    WHERE ready > 0 AND ready = 1 AND lane = :lane AND kind = :kind AND band = :band
    ORDER BY turn, seq LIMIT :heads
)
WHERE since <= :before LIMIT :limit
