-- Among the first in line, those that have waited long: lane, kind, band, heads, before, limit.
SELECT seq, lane, band, tenant FROM (
    SELECT seq, lane, band, tenant, since FROM penstock.jobs
    WHERE ready > 0 AND ready = 1 AND lane = $1 AND kind = $2 AND band = $3
    ORDER BY turn, seq LIMIT $4
) AS head
WHERE since <= $5 LIMIT $6
