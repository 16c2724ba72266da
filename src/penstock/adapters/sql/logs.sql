-- Logs, and what they were told: logs, changes, stopped_logs. See tables/jobs.sql.

-- name: lock_log [postgres]
-- Nobody writes to a log, or stores jobs of it, until this transaction ends.
SELECT penstock.log_changes_1(:tenant, :log, :now, '{}', '{}', '{}')

-- name: lock_log [sqlite]
SELECT 1

-- name: append_changes [postgres]
-- Each has its log's next version.
SELECT penstock.log_changes_1(:tenant, :log, :now, :whats, :job_ids, :datas)

-- name: append_changes [sqlite]
-- :entries is [[what, job_id, data], ...]. A trigger keeps the version of the log.
INSERT INTO changes (tenant, log, version, at, what, job_id, data)
SELECT :tenant, :log,
       coalesce((SELECT version FROM logs WHERE tenant = :tenant AND log = :log), 0) + 1 + key,
       :now, value ->> 0, value ->> 1, value ->> 2
FROM json_each(:entries)

-- name: read_changes
SELECT log, version, at, what, job_id, data FROM penstock.changes
WHERE tenant = :tenant AND log = :log AND version > :since
ORDER BY version LIMIT :limit

-- name: these_logs [postgres]
unnest(:tenants::text[], :logs::text[]) WITH ORDINALITY AS s (tenant, log, n)

-- name: these_logs [sqlite]
(SELECT value ->> 0 AS tenant, value ->> 1 AS log, key AS n FROM json_each(:pairs)) AS s

-- name: log_versions
-- The newest version of each log, in order; 0 where there is none.
SELECT coalesce(l.version, 0)
FROM {these_logs} LEFT JOIN penstock.logs AS l ON l.tenant = s.tenant AND l.log = s.log
ORDER BY s.n

-- name: are_stopped
SELECT t.log IS NOT NULL
FROM {these_logs} LEFT JOIN penstock.stopped_logs AS t ON t.tenant = s.tenant AND t.log = s.log
ORDER BY s.n

-- name: stop_log
INSERT INTO penstock.stopped_logs (tenant, log, at, whole_before)
VALUES (:tenant, :log, :now, CASE WHEN :whole::boolean THEN penstock.clock() END)
ON CONFLICT DO NOTHING

-- name: stop_strictly
-- No job may finish with its children any more.
UPDATE penstock.stopped_logs SET whole_before = NULL WHERE tenant = :tenant AND log = :log

-- name: is_stopped
SELECT 1 FROM penstock.stopped_logs WHERE tenant = :tenant AND log = :log

-- name: reopen_log
DELETE FROM penstock.stopped_logs WHERE tenant = :tenant AND log = :log

-- name: forget_changes
-- Of a log that has no job left, and whose row is locked: nobody is writing to it.
DELETE FROM penstock.changes WHERE tenant = :tenant AND log = :log
  AND NOT EXISTS (SELECT 1 FROM penstock.jobs WHERE tenant = :tenant AND log = :log)

-- name: forget_log
DELETE FROM penstock.logs WHERE tenant = :tenant AND log = :log
  AND NOT EXISTS (SELECT 1 FROM penstock.jobs WHERE tenant = :tenant AND log = :log)
