-- Entries of a tenant's feed. CROSS JOIN: the feed is read first, in its order.
SELECT f.position, c.log, c.version, c.at, c.what, c.job_id, c.data
FROM feed AS f CROSS JOIN changes AS c
     ON c.tenant = f.tenant AND c.log = f.log AND c.version = f.version AND c.at = f.at
WHERE f.tenant = :tenant AND f.position > :after
ORDER BY f.position LIMIT :limit
