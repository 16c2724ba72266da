-- Steps of jobs. See sql/tables/steps.sql.

-- name: record_step
-- Only if the lease stands, and so does the membership: its id is what nobody else ever has. What
-- is only counted leaves a record as it is.
INSERT INTO steps (
    job, key, name, arguments, occurrence, version, lane, attempts, started_at, finished_at, result,
    details, position)
SELECT :seq, :key, :name, :arguments, :occurrence, :version, :lane, :attempts, :started_at,
       :finished_at, :result, :details, CASE WHEN :result IS NOT NULL THEN {next_position} END
FROM jobs
WHERE seq = :seq AND id = :id AND token = :token AND holder = :member AND state = 'running'
  AND EXISTS (SELECT 1 FROM processes AS p WHERE p.number = :member AND p.id = :member_id)
ON CONFLICT (job, key) DO UPDATE
SET version = excluded.version, lane = excluded.lane, attempts = excluded.attempts,
    started_at = excluded.started_at,
    finished_at = coalesce(excluded.finished_at, steps.finished_at),
    result = coalesce(excluded.result, steps.result),
    details = excluded.details,
    position = coalesce(steps.position, excluded.position)
