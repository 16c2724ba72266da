-- Budgets, and the lines of jobs that are paused by them. See tables/budgets.sql.

-- name: any_budget
SELECT 1 FROM penstock.budgets LIMIT 1

-- name: budget_columns
payer, tokens_limit, cost_limit, per, timezone, begins, ends, tokens, cost, warned, lanes, configured

-- name: all_budgets
SELECT {budget_columns} FROM penstock.budgets ORDER BY payer

-- name: lock_budgets
SELECT {budget_columns} FROM penstock.budgets WHERE payer = ANY (:payers) ORDER BY payer FOR UPDATE

-- name: add_budget
INSERT INTO penstock.budgets
    (payer, tokens_limit, cost_limit, per, timezone, begins, ends, tokens, cost, reached, warned,
     lanes, configured)
VALUES (:payer, :tokens_limit, :cost_limit, :per, :timezone, :begins, :ends, :tokens, :cost,
        :reached, :warned, :lanes, :configured)
ON CONFLICT (payer) DO NOTHING

-- name: save_budget
UPDATE penstock.budgets
SET tokens_limit = :tokens_limit, cost_limit = :cost_limit, per = :per, timezone = :timezone,
    begins = :begins, ends = :ends, tokens = :tokens, cost = :cost, reached = :reached,
    warned = :warned, lanes = :lanes, configured = :configured
WHERE payer = :payer

-- name: drop_budget
DELETE FROM penstock.budgets WHERE payer = :payer

-- name: closed_budgets
-- Budgets of these payers that nothing may be begun on.
SELECT payer, number, ends, lanes FROM penstock.budgets
WHERE payer = ANY (:payers) AND reached = 1 AND ends > :now

-- name: paused_lines
-- Of these lanes and kinds, and until when each stays closed; null: it is open. Of many the oldest.
SELECT p.lane, p.kind, p.ready,
       CASE WHEN b.reached = 1 AND b.ends > :now THEN b.ends END AS until
FROM penstock.paused_lines AS p LEFT JOIN penstock.budgets AS b ON b.payer = p.payer
WHERE p.lane = ANY (:lanes) AND p.kind = ANY (:kinds)
ORDER BY p.ready, p.lane, p.kind

-- name: pause_jobs
-- Into the line of their budget. They keep their place in it.
UPDATE penstock.jobs
SET ready = 2 * :number + (CASE WHEN crashes > 0 THEN 2 ELSE 1 END)
WHERE seq = ANY (:seqs) AND ready > 0

-- name: add_paused_line
INSERT INTO penstock.paused_lines (lane, kind, ready, payer) VALUES (:lane, :kind, :ready, :payer)
ON CONFLICT DO NOTHING

-- name: drop_paused_line
DELETE FROM penstock.paused_lines
WHERE lane = :lane AND kind = :kind AND ready = :ready AND NOT EXISTS (
    SELECT 1 FROM penstock.jobs AS j
    WHERE j.ready > 0 AND j.ready = :ready AND j.lane = :lane AND j.kind = :kind)

-- name: wake_paused [postgres]
INSERT INTO penstock.lines (lane, kind, wake_at, since)
SELECT DISTINCT lane, kind, 0::float8, :now::float8 FROM penstock.paused_lines
WHERE payer = ANY (:payers) ORDER BY lane, kind
ON CONFLICT (lane, kind) DO UPDATE SET wake_at = 0, waits_for = NULL

-- name: wake_paused [sqlite]
INSERT INTO lines (lane, kind, wake_at, since)
SELECT DISTINCT lane, kind, 0, :now FROM paused_lines
WHERE payer IN (SELECT value FROM json_each(:payers))
ON CONFLICT (lane, kind) DO UPDATE SET wake_at = 0, waits_for = NULL

-- name: paused_budgets
-- The budgets that keep jobs of these lines from starting.
SELECT p.lane, p.kind, p.ready, b.payer
FROM penstock.paused_lines AS p JOIN penstock.budgets AS b ON b.payer = p.payer
WHERE p.ready = ANY (:readies) AND b.reached = 1 AND b.ends > :now
