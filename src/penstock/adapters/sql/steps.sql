-- Steps of jobs. See tables/steps.sql. Each adapter records them in its own way.

-- name: steps_of
SELECT s.key, s.name, s.arguments, s.occurrence, s.version, s.lane, s.attempts, s.started_at,
       s.finished_at, s.result, s.details
FROM penstock.steps AS s JOIN penstock.jobs AS j ON j.seq = s.job
WHERE j.id = :id
ORDER BY s.started_at, s.name, s.occurrence, s.key

-- name: next_position [postgres]
-- Above every position that the job ever had: its token grows with each claim.
greatest(:token::bigint * 16777216, (
    SELECT max(position) FROM penstock.steps WHERE job = :seq AND position IS NOT NULL)) + 1

-- name: next_position [sqlite]
max(:token * 16777216, coalesce((
    SELECT max(position) FROM steps WHERE job = :seq AND position IS NOT NULL), 0)) + 1

-- name: recorded_after
-- In the order in which they were recorded. Only events with what they tell: results may be large.
SELECT s.position, s.key, s.name, s.arguments, s.occurrence, s.version, s.lane, s.attempts,
       s.started_at, s.finished_at, CASE WHEN s.name = '' THEN s.result END, s.details
FROM penstock.steps AS s
WHERE s.job = (SELECT j.seq FROM penstock.jobs AS j WHERE j.id = :id) AND s.position > :after
ORDER BY s.position LIMIT :limit

-- name: last_recorded
SELECT j.id, coalesce((
    SELECT max(s.position) FROM penstock.steps AS s
    WHERE s.job = j.seq AND s.position IS NOT NULL), 0)
FROM penstock.jobs AS j WHERE j.id = ANY (:ids)

-- name: take_over_records
INSERT INTO penstock.steps (
    job, key, name, arguments, occurrence, version, lane, attempts, started_at, finished_at, result,
    details, position)
SELECT j.seq, s.key, s.name, s.arguments, s.occurrence, s.version, s.lane, s.attempts, s.started_at,
       s.finished_at, s.result, s.details, s.position
FROM penstock.steps AS s, penstock.jobs AS j
WHERE s.job = :source AND s.position < :before AND j.id = :id

-- name: has_records
-- A run with token 1 would look for none.
UPDATE penstock.jobs SET token = 1 WHERE id = :id

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
