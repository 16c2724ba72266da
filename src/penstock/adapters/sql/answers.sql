-- Answers to questions. See tables/research.sql.

-- name: answer_columns
tenant, id, state, created_at, saves, body, rounds

-- name: answer_without_rounds
tenant, id, state, created_at, saves, body, '[]' AS rounds

-- name: create_answer
INSERT INTO penstock.answers ({answer_columns})
VALUES (:tenant, :id, :state, :created_at, :saves, :body, :rounds)
ON CONFLICT DO NOTHING

-- name: read_answer
SELECT {answer_columns} FROM penstock.answers WHERE (tenant, id) = (:tenant, :id)

-- name: save_answer
-- Only by whoever has seen it as it is, and while it is running.
UPDATE penstock.answers SET state = :state, saves = saves + 1, body = :body, rounds = :rounds
WHERE (tenant, id, saves) = (:tenant, :id, :saves) AND state = 'running'

-- name: newest_answers
SELECT {answer_without_rounds} FROM penstock.answers WHERE tenant = :tenant
ORDER BY created_at DESC, id DESC LIMIT :limit

-- name: older_answers
-- Not with a subquery for the time: PostgreSQL searches the index for values only.
SELECT {answer_without_rounds} FROM penstock.answers
WHERE tenant = :tenant AND (created_at, id) < (:created_at, :before)
ORDER BY created_at DESC, id DESC LIMIT :limit

-- name: running_answers
SELECT {answer_without_rounds} FROM penstock.answers
WHERE state = 'running' AND created_at < :before AND (tenant, id) > (:tenant, :id)
ORDER BY tenant, id LIMIT :limit
