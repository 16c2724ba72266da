-- Steps of jobs. See tables/steps.sql. Each adapter records them in its own way.

-- name: steps_of
SELECT s.key, s.name, s.arguments, s.occurrence, s.version, s.lane, s.attempts, s.started_at,
       s.finished_at, s.result, s.details
FROM penstock.steps AS s JOIN penstock.jobs AS j ON j.seq = s.job
WHERE j.id = :id
ORDER BY s.started_at, s.name, s.occurrence, s.key

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

-- name: secret
SELECT value FROM penstock.secrets WHERE name = :name

-- name: make_secret
INSERT INTO penstock.secrets (name, value) VALUES (:name, :value) ON CONFLICT (name) DO NOTHING
