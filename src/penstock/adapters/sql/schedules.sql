-- Schedules that are rows. See tables/schedules.sql.

-- name: schedule_columns
tenant, name, kind, payload, cron, every_seconds, timezone, priority, overlap, catch_up, next_at,
counted_at, last_at, last_job, created_at, changed_at, revision

-- name: schedule
SELECT {schedule_columns} FROM penstock.schedules WHERE tenant = :tenant AND name = :name

-- name: schedules
SELECT {schedule_columns} FROM penstock.schedules
WHERE (tenant, name) > (:tenant, :name) ORDER BY tenant, name LIMIT :limit

-- name: schedules_of
SELECT {schedule_columns} FROM penstock.schedules
WHERE tenant = :tenant AND name > :name ORDER BY name LIMIT :limit

-- When the next is due; 0 if one was counted while the clock was ahead by more than a second.
-- name: next_schedule
SELECT CASE WHEN (SELECT max(counted_at) FROM penstock.schedules) > :now::float8 + 1 THEN 0
            ELSE (SELECT min(next_at) FROM penstock.schedules) END

-- name: due_schedules
SELECT {schedule_columns} FROM penstock.schedules
WHERE next_at <= :now ORDER BY next_at LIMIT :limit

-- Of those that were counted while the clock was ahead: what is not among the due ones.
-- name: schedules_ahead
SELECT {schedule_columns} FROM penstock.schedules
WHERE counted_at > :now::float8 + 1 AND next_at > :now ORDER BY counted_at DESC LIMIT :limit

-- name: add_schedule
INSERT INTO penstock.schedules ({schedule_columns})
VALUES (:tenant, :name, :kind, :payload, :cron, :every_seconds, :timezone, :priority, :overlap,
        :catch_up, :next_at, :counted_at, :last_at, :last_job, :created_at, :changed_at, :revision)
ON CONFLICT (tenant, name) DO NOTHING

-- name: move_schedule
UPDATE penstock.schedules
SET kind = :kind, payload = :payload, cron = :cron, every_seconds = :every_seconds,
    timezone = :timezone, priority = :priority, overlap = :overlap, catch_up = :catch_up,
    next_at = :next_at, counted_at = :counted_at, last_at = :last_at, last_job = :last_job,
    created_at = :created_at, changed_at = :changed_at, revision = :revision
WHERE tenant = :tenant AND name = :name AND revision = :was

-- name: remove_schedule
DELETE FROM penstock.schedules WHERE tenant = :tenant AND name = :name
