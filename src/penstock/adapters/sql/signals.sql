-- Signals to jobs. See tables/signals.sql.

-- name: lock_job
SELECT seq, state, ready, waits_lane FROM penstock.jobs WHERE id = :id FOR UPDATE

-- name: known_signal
SELECT 1 FROM penstock.signals WHERE job = :seq AND key = :key

-- name: last_signal
SELECT coalesce(max(number), 0) FROM penstock.signals WHERE job = :seq

-- name: add_signal
INSERT INTO penstock.signals (job, number, name, key, payload, at)
VALUES (:seq, :number, :name, :key, :payload, :now)

-- name: wake_suspended
UPDATE penstock.jobs SET run_at = :now, since = :now
WHERE seq = :seq AND state = 'queued' AND ready = 0

-- name: next_signal
SELECT number, payload FROM penstock.signals
WHERE job = :seq AND name = :name AND taken_by IS NULL ORDER BY number LIMIT 1

-- name: take_signal
UPDATE penstock.signals SET taken_by = :key WHERE job = :seq AND number = :number

-- name: record_taken
INSERT INTO penstock.steps (
    job, key, name, arguments, occurrence, version, lane, attempts, started_at, finished_at, result,
    position)
VALUES (:seq, :key, :name, :arguments, :occurrence, :version, :lane, :attempts, :started_at,
        :finished_at, :result, {next_position})
ON CONFLICT (job, key) DO UPDATE
SET version = excluded.version, finished_at = excluded.finished_at, result = excluded.result,
    position = coalesce(steps.position, excluded.position)

-- name: untake_signals
UPDATE penstock.signals SET taken_by = NULL WHERE job = :seq AND taken_by = ANY (:keys)

-- name: untake_all_signals
UPDATE penstock.signals SET taken_by = NULL WHERE job = ANY (:seqs)
