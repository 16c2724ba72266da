-- Jobs enqueued where their kind was unknown: kind, limit.
SELECT seq, band, tenant, payload FROM penstock.jobs
WHERE ready > 0 AND ready = 1 AND lane = '?' AND kind = $1
ORDER BY band, turn, seq LIMIT $2 FOR UPDATE SKIP LOCKED
