-- Jobs: stored, claimed, settled, taken back. See sql/tables/jobs.sql.
--
-- What is settled comes as :batch, a JSON array of rows. A plus keeps SQLite from a column's index:
-- jobs are found by seq.

-- name: of_batch
FROM json_each(:batch) AS s
WHERE jobs.seq = s.value ->> 0 AND +jobs.id = s.value ->> 1 AND jobs.token = s.value ->> 2

-- name: short_history
-- With room for one more record: it keeps the first and the newest.
iif(json_array_length(history) < :history_limit, history, json_remove(history, '$[1]'))

-- name: insert
-- :items is [[id, payload, key, lane, turn], ...]
INSERT INTO jobs (id, payload, key, lane, turn, tenant, kind, priority, band, ready, since,
                  run_at, deadline, timeout, max_retries, log, parent_id, attached,
                  enqueued_at, trace, rerun_of)
SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4,
       :tenant, :kind, :priority, :priority, :ready, :now,
       :run_at, :deadline, :timeout, :max_retries, :log, :parent_id, :attached, :now, :trace,
       :rerun_of
FROM json_each(:items) WHERE true
ON CONFLICT (id) DO NOTHING

-- name: end_bursts
-- Past its longest wait a job keeps its place in line; another line needs another job.
UPDATE jobs SET debounce_key = NULL
FROM json_each(:items) AS i
WHERE {of_burst}
  AND jobs.ready = 1 AND jobs.enqueued_at + :max_wait <= :now
  AND (jobs.lane = '?' OR jobs.lane <> i.value ->> 2 OR jobs.priority <> :priority)

-- name: of_burst
jobs.tenant = :tenant AND jobs.kind = :kind AND jobs.debounce_key = i.value ->> 4
    AND jobs.debounce_key IS NOT NULL AND jobs.state = 'queued' AND jobs.token = 0

-- name: replace_payloads
-- :items is [[id, payload, lane, amount, key], ...]. (No upsert: a trigger would have to follow its
-- rule for conflicts.)
UPDATE jobs SET
    payload = i.value ->> 1, lane = i.value ->> 2, amount = i.value ->> 3, priority = :priority,
    deadline = :deadline, timeout = :timeout, max_retries = :max_retries, trace = :trace,
    (ready, band, since, run_at) = (
        SELECT iif(s.stays, 1, 0), iif(s.stays, jobs.band, :priority),
               iif(s.stays, jobs.since, :now),
               iif(s.stays, jobs.run_at, min(:now + :debounce, jobs.enqueued_at + :max_wait))
        FROM (SELECT jobs.ready = 1 AND jobs.enqueued_at + :max_wait <= :now AS stays) AS s)
FROM json_each(:items) AS i
WHERE {of_burst} AND NOT EXISTS (SELECT 1 FROM jobs AS o WHERE o.id = i.value ->> 0)

-- name: debounce
INSERT INTO jobs (id, payload, lane, amount, debounce_key, turn, tenant, kind, priority, band, ready,
                  since, run_at, deadline, timeout, max_retries, enqueued_at, trace)
SELECT i.value ->> 0, i.value ->> 1, i.value ->> 2, i.value ->> 3, i.value ->> 4, 0,
       :tenant, :kind, :priority, :priority, 0, :now, :now + :debounce, :deadline, :timeout,
       :max_retries, :now, :trace
FROM json_each(:items) AS i
WHERE NOT EXISTS (SELECT 1 FROM jobs WHERE {of_burst})
  AND NOT EXISTS (SELECT 1 FROM jobs AS o WHERE o.id = i.value ->> 0)

-- name: debounced
SELECT i.value ->> 0 AS item, coalesce(o.id, jobs.id) AS job_id FROM json_each(:items) AS i
LEFT JOIN jobs AS o ON o.id = i.value ->> 0
LEFT JOIN jobs ON {of_burst}

-- name: unique_jobs_of
-- :bursts is a list of them.
SELECT u.burst, u.job_id FROM json_each(:bursts) AS i CROSS JOIN unique_jobs AS u
ON u.tenant = :tenant AND u.kind = :kind AND u.burst = i.value
WHERE u.until > :now AND EXISTS (SELECT 1 FROM jobs WHERE jobs.id = u.job_id)

-- name: note_unique_jobs
-- :items is [[burst, job id], ...]
INSERT INTO unique_jobs (tenant, kind, burst, job_id, until)
SELECT :tenant, :kind, value ->> 0, value ->> 1, :now + :unique_for
FROM json_each(:items) WHERE true
ON CONFLICT (tenant, kind, burst) DO UPDATE SET job_id = excluded.job_id, until = excluded.until

-- name: pending
-- What a claim must see to first; each answer is one look at the head of an index.
SELECT EXISTS (SELECT 1 FROM jobs WHERE state = 'queued' AND ready = 0 AND run_at <= :now),
       EXISTS (SELECT 1 FROM jobs WHERE state = 'queued' AND deadline IS NOT NULL AND deadline <= :now),
       EXISTS (SELECT 1 FROM jobs WHERE ready > 0 AND ready = 1 AND lane = :unknown),
       EXISTS (SELECT 1 FROM jobs WHERE ready > 0 AND ready = 2),
       EXISTS (SELECT 1 FROM lines),
       EXISTS (SELECT 1 FROM budgets) OR EXISTS (SELECT 1 FROM paused_lines)

-- name: due
SELECT seq, lane, band, tenant FROM jobs
WHERE state = 'queued' AND ready = 0 AND run_at <= :now ORDER BY run_at LIMIT :limit

-- name: next_due
SELECT (SELECT min(run_at) FROM jobs WHERE state = 'queued' AND ready = 0),
       (SELECT min(deadline) FROM jobs WHERE state = 'queued' AND deadline IS NOT NULL)

-- name: lease
-- Claimed: the attempt is counted now, and given back if the run turns out not to have started.
UPDATE jobs
SET state = 'running', ready = 0, token = token + 1, attempts = attempts + 1,
    holder = :member, started_at = :now, waits_lane = NULL
WHERE seq IN (SELECT value FROM json_each(:seqs))

-- name: hold
-- Jobs waiting for a retry while their last run still occupies a thread: not yet.
UPDATE jobs SET run_at = max(run_at, :until), ready = 0, since = :now
{of_batch}
  AND jobs.state = 'queued'

-- name: completed
-- :batch is [[seq, id, token, started_at, finished_at, result], ...]
UPDATE jobs
SET state = 'completed', holder = NULL, started_at = s.value ->> 3, finished_at = s.value ->> 4,
    result = s.value ->> 5, error = NULL, progress = 1
{of_batch} AND +jobs.holder = :member AND jobs.state = 'running'

-- name: failed
-- :batch is [[seq, id, token, started_at, finished_at, error, run_at, history record], ...]
UPDATE jobs
SET state = 'failed', holder = NULL, started_at = s.value ->> 3, finished_at = s.value ->> 4,
    error = s.value ->> 5,
    history = json_insert({short_history}, '$[#]', json(s.value -> 7))
{of_batch} AND +jobs.holder = :member AND jobs.state = 'running'

-- name: retry
-- :batch is [[seq, id, token, started_at, finished_at, error, run_at, history record], ...]
UPDATE jobs
SET state = 'queued', holder = NULL, started_at = NULL, error = s.value ->> 5,
    run_at = s.value ->> 6, since = s.value ->> 4, progress = 0, message = '',
    history = json_insert({short_history}, '$[#]', json(s.value -> 7))
{of_batch} AND +jobs.holder = :member AND jobs.state = 'running'

-- name: released
-- :batch is [[seq, id, token, run_at, reason, waits_lane, planned at, history record or null], ...]
UPDATE jobs
SET state = 'queued', holder = NULL, started_at = NULL, attempts = attempts - 1,
    releases = releases + 1, run_at = s.value ->> 3, since = s.value ->> 6,
    message = s.value ->> 4, waits_lane = s.value ->> 5,
    history = iif(s.value ->> 7 IS NULL, history, json_insert({short_history}, '$[#]', json(s.value -> 7)))
{of_batch} AND +jobs.holder = :member AND jobs.state = 'running'

-- name: suspended
-- :batch is [[seq, id, token, run_at, waits_lane, signal or null, due if that has come], ...]
UPDATE jobs
SET state = 'queued', holder = NULL, started_at = NULL, attempts = attempts - 1,
    run_at = iif(EXISTS (SELECT 1 FROM signals AS g
                         WHERE g.job = jobs.seq AND g.name = s.value ->> 5 AND g.taken_by IS NULL),
                 min(s.value ->> 6, :now), s.value ->> 3),
    since = :now, waits_lane = s.value ->> 4
{of_batch} AND +jobs.holder = :member AND jobs.state = 'running'

-- name: handed_back
-- :batch is [[seq, id, token, run_at, waits_lane, history record or null], ...]; run_at is null to
-- keep the place in line
UPDATE jobs
SET state = 'queued', holder = NULL, started_at = NULL, attempts = attempts - 1, progress = 0,
    message = '', waits_lane = s.value ->> 4, run_at = coalesce(s.value ->> 3, run_at),
    ready = iif(s.value ->> 3 IS NULL, 1 + (crashes > 0), 0),
    since = iif(s.value ->> 3 IS NULL, since, :now),
    history = iif(s.value ->> 5 IS NULL, history, json_insert({short_history}, '$[#]', json(s.value -> 5)))
{of_batch} AND +jobs.holder = :member AND jobs.state = 'running'

-- name: cancel_seen
-- :batch is [[seq, id, token], ...]
UPDATE jobs SET holder = NULL
{of_batch}
  AND +jobs.holder = :member AND jobs.state = 'cancelled'

-- name: stale
-- Settlements of :batch ([[seq, id, token, ...], ...]) that do not stand: taken over, cancelled, or
-- gone. One that was already stored with the same token does stand.
SELECT s.value ->> 0
FROM json_each(:batch) AS s LEFT JOIN jobs ON jobs.seq = s.value ->> 0
WHERE jobs.id IS NOT s.value ->> 1 OR jobs.token IS NOT s.value ->> 2 OR jobs.holder IS NOT NULL OR jobs.state = 'cancelled'

-- name: progress
-- :batch is [[seq, id, token, fraction or null, message, lines to log], ...]
UPDATE jobs
SET progress = coalesce(s.value ->> 3, progress),
    message = iif(s.value ->> 3 IS NULL, message, s.value ->> 4),
    lines = iif(s.value ->> 5 = '', lines, substr(coalesce(lines, '') || (s.value ->> 5), -:log_limit))
{of_batch} AND +jobs.holder = :member AND jobs.state = 'running'
