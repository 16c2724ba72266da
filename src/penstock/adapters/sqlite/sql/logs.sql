-- Logs, and the feed of a tenant. See 0001_jobs.sql.

-- name: feed
-- Entries of a tenant's feed. CROSS JOIN: the feed is read first, in its order.
SELECT f.position, c.log, c.version, c.at, c.what, c.job_id, c.data
FROM feed AS f CROSS JOIN changes AS c
     ON c.tenant = f.tenant AND c.log = f.log AND c.version = f.version AND c.at = f.at
WHERE f.tenant = :tenant AND f.position > :after
ORDER BY f.position LIMIT :limit

-- name: forget_feed
-- Delete what is old among the first entries. One from the far future is a wrong clock's. The
-- newest stays: positions are counted from it.
DELETE FROM feed
WHERE position IN (SELECT position FROM feed ORDER BY position LIMIT :limit)
  AND at NOT BETWEEN :now - :kept AND :now + :kept
  AND position < (SELECT max(position) FROM feed)
