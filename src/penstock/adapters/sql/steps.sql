-- Steps of jobs. See tables/steps.sql. PostgreSQL records them in a function: 0007_steps.sql.

-- name: steps_of
SELECT s.key, s.name, s.arguments, s.occurrence, s.version, s.lane, s.attempts, s.started_at,
       s.finished_at, s.result
FROM penstock.steps AS s JOIN penstock.jobs AS j ON j.seq = s.job
WHERE j.id = :id
ORDER BY s.started_at, s.name, s.occurrence, s.key

-- name: record_step [sqlite]
-- Only if the lease stands. What is only counted leaves a record as it is.
INSERT INTO steps (
    job, key, name, arguments, occurrence, version, lane, attempts, started_at, finished_at, result)
SELECT :seq, :key, :name, :arguments, :occurrence, :version, :lane, :attempts, :started_at,
       :finished_at, :result
FROM jobs
WHERE seq = :seq AND id = :id AND token = :token AND holder = :member AND state = 'running'
ON CONFLICT (job, key) DO UPDATE
SET version = excluded.version, lane = excluded.lane, attempts = excluded.attempts,
    started_at = excluded.started_at,
    finished_at = coalesce(excluded.finished_at, steps.finished_at),
    result = coalesce(excluded.result, steps.result)

-- name: lock_held
-- The job of a lease that stands, locked until the end of the transaction.
SELECT j.seq FROM penstock.jobs AS j
WHERE j.seq = :seq AND j.id = :id AND j.token = :token AND j.holder = :member AND j.state = 'running'
  AND EXISTS (SELECT 1 FROM penstock.processes AS p WHERE p.number = :member AND p.id = :member_id)
FOR UPDATE OF j

-- name: drop_steps
DELETE FROM penstock.steps WHERE job = :seq AND key = ANY (:keys)

-- name: drop_all_steps
DELETE FROM penstock.steps WHERE job = ANY (:seqs)
