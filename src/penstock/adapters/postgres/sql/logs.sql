-- Logs. See 0001_jobs.sql.

-- name: forget_log
-- A log that has no job left. Its row is locked: nobody is writing to it.
WITH spent AS (
    DELETE FROM penstock.logs AS l
    WHERE l.tenant = $1 AND l.log = $2
      AND NOT EXISTS (SELECT 1 FROM penstock.jobs AS j WHERE j.tenant = $1 AND j.log = $2)
    RETURNING l.tenant, l.log
)
DELETE FROM penstock.changes AS c USING spent WHERE c.tenant = spent.tenant AND c.log = spent.log
