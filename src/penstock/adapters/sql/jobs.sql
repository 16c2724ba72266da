-- What people do to jobs, and see of them. Enqueueing, claiming and settling are each adapter's own.
-- See tables/jobs.sql.

-- name: history_json [postgres]
'[' || array_to_string(history, ',') || ']' AS history

-- name: history_json [sqlite]
history

-- name: job_columns
id, kind, payload, state, tenant, priority, lane, key, log, parent_id, enqueued_at, run_at,
started_at, finished_at, deadline, timeout, max_retries, attempts, releases, progress, message,
result, error, {history_json}, ready, band, turn, seq, lines, rerun_of,
waits_lane, debounce_key

-- name: job_ref
seq, id, tenant, log, state

-- name: unfinished
state IN ('queued', 'running')

-- name: in_lane
-- The condition of the index by lane, word for word: neither NO_LANE nor UNKNOWN_LANE.
lane <> '' AND lane <> '?'

-- name: of_kinds [postgres]
kind ~ :pattern

-- name: of_kinds [sqlite]
kind GLOB :glob

-- name: error_type [postgres]
error_type

-- name: error_type [sqlite]
error ->> 'type'

-- name: with_record [postgres]
-- A job's history with one more record. It keeps the first and the newest.
penstock.with_record(history, :record, :history_limit)

-- name: with_record [sqlite]
json_insert(
    CASE WHEN NOT json_valid(history) THEN '[]'
         WHEN json_array_length(history) < :history_limit THEN history
         ELSE json_remove(history, '$[1]') END,
    '$[#]', json(:record))

-- name: open_log
NOT EXISTS (SELECT 1 FROM penstock.stopped_logs AS s
            WHERE s.tenant = jobs.tenant AND s.log = jobs.log)

-- name: these_ids [postgres]
unnest(:ids::text[]) WITH ORDINALITY AS s (id, n)

-- name: these_ids [sqlite]
(SELECT value AS id, key AS n FROM json_each(:ids)) AS s

-- name: finished_jobs
-- Which of these ids need no more waiting: finished, or gone.
SELECT s.id FROM {these_ids} LEFT JOIN penstock.jobs AS j ON j.id = s.id
WHERE j.state IS NULL OR j.state NOT IN ('queued', 'running')
ORDER BY s.n

-- name: unfinished_of_log
-- Locked in the order everybody locks jobs.
SELECT {job_ref} FROM penstock.jobs
WHERE tenant = :tenant AND log = :log AND {unfinished}
ORDER BY seq FOR UPDATE

-- name: unfinished_since
-- The same but for those that are locked already. Who has one of these locked may be waiting for the
-- log, so nobody is waited for.
SELECT {job_ref} FROM penstock.jobs
WHERE tenant = :tenant AND log = :log AND {unfinished} AND seq <> ALL (:seqs)
ORDER BY seq FOR UPDATE NOWAIT

-- name: cancel_jobs
UPDATE penstock.jobs SET state = 'cancelled', ready = 0, finished_at = :now WHERE seq = ANY (:seqs)

-- name: cancel_requeued
-- Of jobs that are queued (by an earlier statement, if again), those whose log is stopped are
-- cancelled. But not children of a job that may finish with them (see tables/jobs.sql). They are
-- locked like those of any other cancel: who is enqueueing children of one is waited for.
UPDATE penstock.jobs SET state = 'cancelled', ready = 0, finished_at = :now
WHERE seq = ANY (ARRAY(
    SELECT q.seq FROM penstock.jobs AS q
    WHERE q.seq = ANY (:seqs) AND q.state = 'queued'
      AND EXISTS (SELECT 1 FROM penstock.stopped_logs AS s
                  WHERE s.tenant = q.tenant AND s.log = q.log
                    AND NOT (q.attached AND EXISTS (
                        SELECT 1 FROM penstock.jobs AS p
                        WHERE p.id = q.parent_id AND p.state = 'running' AND p.tenant = s.tenant
                          AND p.log = s.log AND p.enqueued_at <= s.whole_before)))
    ORDER BY q.seq FOR UPDATE OF q))
RETURNING seq

-- name: any_closed
-- Whether the log of any of these jobs is stopped.
SELECT 1 FROM penstock.jobs WHERE seq = ANY (:seqs) AND NOT ({open_log}) LIMIT 1

-- name: redrive_jobs
UPDATE penstock.jobs
SET state = 'queued', ready = 0, run_at = :now, since = :now, attempts = 0, crashes = 0,
    releases = 0, token = token + 1, started_at = NULL, finished_at = NULL, progress = 0, message = '',
    deadline = CASE WHEN deadline > :now THEN deadline END, history = {with_record}
WHERE seq = ANY (:seqs)

-- name: discard_jobs
DELETE FROM penstock.jobs WHERE seq = ANY (:seqs)

-- Children of cancelled jobs.

-- name: mark_cascades
-- (A scalar and not EXISTS, which may be planned as a look at the children of everybody.)
INSERT INTO penstock.cascades (id)
SELECT p.id FROM penstock.jobs AS p
WHERE p.seq = ANY (:seqs)
  AND (SELECT j.seq FROM penstock.jobs AS j
       WHERE j.parent_id = p.id AND j.attached AND j.state IN ('queued', 'running') LIMIT 1)
      IS NOT NULL
ORDER BY p.id
ON CONFLICT DO NOTHING

-- name: any_cascade
SELECT 1 FROM penstock.cascades LIMIT 1

-- name: cascade_parents
-- No two processes work on the same family.
SELECT id FROM penstock.cascades ORDER BY id LIMIT :limit FOR UPDATE SKIP LOCKED

-- name: cascade_children
-- Locked in the order everybody locks jobs. They are picked first and sorted after, lest they be
-- looked for by seq.
SELECT {job_ref} FROM penstock.jobs
WHERE seq = ANY (ARRAY(
    SELECT j.seq FROM penstock.jobs AS j
    WHERE j.parent_id = ANY (:parents) AND j.attached AND j.state IN ('queued', 'running')
    LIMIT :limit))
  AND {unfinished}
ORDER BY seq FOR UPDATE

-- name: forget_cascades
-- Of parents that have no more children to be cancelled.
DELETE FROM penstock.cascades AS c
WHERE c.id = ANY (:parents)
  AND (SELECT j.seq FROM penstock.jobs AS j
       WHERE j.parent_id = c.id AND j.attached AND j.state IN ('queued', 'running') LIMIT 1)
      IS NULL

-- Figures.

-- name: count_jobs
-- Of each kind and state, and since when the first of them could run: what is for later, or sleeps,
-- does not wait for a worker.
SELECT kind, state, count(*), min(CASE WHEN run_at <= penstock.clock() THEN run_at END)
FROM penstock.jobs
WHERE :tenant::text IS NULL OR tenant = :tenant
GROUP BY kind, state

-- name: count_queued
-- Each half by its index.
SELECT (SELECT count(*) FROM penstock.jobs
        WHERE ready > 0 AND (:tenant::text IS NULL OR tenant = :tenant))
     + (SELECT count(*) FROM penstock.jobs
        WHERE state = 'queued' AND ready = 0 AND (:tenant::text IS NULL OR tenant = :tenant))

-- name: dead_groups
-- Dead letters by kind and type of error: how many, from when to when, and the newest of each.
WITH dead AS (
    SELECT seq, kind, coalesce({error_type}, '') AS error_type, finished_at FROM penstock.jobs
    WHERE state = 'failed' AND (:tenant::text IS NULL OR tenant = :tenant)
), groups AS (
    SELECT kind, error_type, count(*) AS count, min(finished_at) AS first_at,
           max(finished_at) AS last_at
    FROM dead GROUP BY kind, error_type
    ORDER BY count DESC, kind, error_type LIMIT :most
), ranked AS (
    SELECT kind, error_type, seq, row_number() OVER (
        PARTITION BY kind, error_type ORDER BY finished_at DESC, seq DESC) AS place
    FROM dead
)
SELECT g.kind, g.error_type, g.count, g.first_at, g.last_at, j.error, j.id
FROM groups AS g
JOIN ranked AS n ON n.kind = g.kind AND n.error_type = g.error_type AND n.place = 1
JOIN penstock.jobs AS j ON j.seq = n.seq
ORDER BY g.count DESC, g.kind, g.error_type

-- name: any_work
-- Whether any job is queued, running, or still being stopped.
SELECT EXISTS (SELECT 1 FROM penstock.jobs WHERE ready > 0)
    OR EXISTS (SELECT 1 FROM penstock.jobs WHERE state = 'queued' AND ready = 0)
    OR EXISTS (SELECT 1 FROM penstock.jobs WHERE holder IS NOT NULL)

-- name: any_work_of [postgres]
-- The same of these kinds.
SELECT EXISTS (SELECT 1 FROM penstock.jobs WHERE ready > 0 AND kind = ANY (:kinds))
    OR EXISTS (SELECT 1 FROM penstock.jobs
               WHERE state = 'queued' AND ready = 0 AND kind = ANY (:kinds))
    OR EXISTS (SELECT 1 FROM penstock.jobs WHERE holder IS NOT NULL AND kind = ANY (:kinds))

-- name: any_work_of [sqlite]
-- Line by line: those of other kinds may be long, and are not gone through.
WITH wanted (kind) AS (SELECT value FROM json_each(:kinds)),
     some (lane, kind) AS (
         SELECT lane, kind FROM wanted JOIN lines USING (kind)
         UNION ALL SELECT :none, kind FROM wanted
         UNION ALL SELECT :unknown, kind FROM wanted)
SELECT EXISTS (SELECT 1 FROM some CROSS JOIN jobs
               ON ready > 0 AND ready IN (1, 2)
               AND jobs.lane = some.lane AND jobs.kind = some.kind)
    OR EXISTS (SELECT 1 FROM wanted JOIN paused_lines AS p USING (kind) CROSS JOIN jobs
               ON jobs.ready > 0 AND jobs.ready = p.ready
               AND jobs.lane = p.lane AND jobs.kind = p.kind)
    OR EXISTS (SELECT 1 FROM jobs WHERE state = 'queued' AND ready = 0 AND kind IN wanted)
    OR EXISTS (SELECT 1 FROM jobs WHERE holder IS NOT NULL AND kind IN wanted)

-- name: count_waiting
-- Jobs in the lines of each lane.
SELECT lane, count(*) FROM penstock.jobs WHERE ready > 0 AND {in_lane} GROUP BY lane

-- name: served_kinds [postgres]
SELECT DISTINCT unnest(kinds) FROM penstock.processes WHERE lease_until > :now

-- name: served_kinds [sqlite]
SELECT DISTINCT value FROM processes, json_each(kinds) WHERE lease_until > :now

-- name: processes
SELECT id, host, pid, kinds, max_workers, joined_at, heartbeat_at, lease_until, status
FROM penstock.processes ORDER BY joined_at

-- name: life_names
SELECT life FROM penstock.processes

-- Ageing.

-- name: oldest_lines
SELECT lane, kind FROM penstock.lines WHERE kind = :kind ORDER BY since LIMIT :limit

-- name: aged
-- Among the first in line, those that have waited long.
SELECT seq, lane, band, tenant FROM (
    SELECT seq, lane, band, tenant, since FROM penstock.jobs
    WHERE ready > 0 AND ready = 1 AND lane = :lane AND kind = :kind AND band = :band
    ORDER BY turn, seq LIMIT :heads
) AS head
WHERE since <= :before LIMIT :limit

-- name: join
INSERT INTO penstock.processes
    (id, host, pid, boot, life, kinds, max_workers, joined_at, heartbeat_at, lease_until)
VALUES (:id, :host, :pid, :boot, :life, :kinds, :max_workers, :now, :now, :lease_until)
RETURNING number

-- name: cancelled_here
-- The jobs that a member holds and that have been cancelled.
SELECT seq FROM penstock.jobs JOIN penstock.processes AS p ON p.number = holder
WHERE holder = :number AND state = 'cancelled' AND p.id = :id

-- name: other_members
-- When they were renewed last, and for how many seconds. See `LeaseWatch`.
SELECT number, life, heartbeat_at, lease_until - heartbeat_at FROM penstock.processes
WHERE number <> :me

-- name: chores
-- Whether queued jobs are overdue, whether cancelled ones have children left, and whether any were
-- put off at a time which is still to come; and the time. The first and the last of an index, not
-- what compares with the clock: that would be all jobs which sleep.
SELECT coalesce((SELECT min(deadline) FROM penstock.jobs
                 WHERE state = 'queued' AND deadline IS NOT NULL) <= penstock.clock(), false),
       EXISTS (SELECT 1 FROM penstock.cascades),
       coalesce((SELECT max(since) FROM penstock.jobs
                 WHERE state = 'queued' AND ready = 0) > penstock.clock(), false),
       penstock.clock()

-- name: bring_forward
-- Some of the jobs that were put off while the clock was ahead.
UPDATE penstock.jobs SET run_at = run_at - (since - :now), since = :now
WHERE seq = ANY (ARRAY(
    SELECT seq FROM penstock.jobs WHERE state = 'queued' AND ready = 0 AND since > :now
    ORDER BY since LIMIT :limit FOR UPDATE SKIP LOCKED))

-- name: set_error [postgres]
error = :error, error_type = :error_type

-- name: set_error [sqlite]
error = :error

-- name: overdue
-- Queued jobs whose deadline has passed, and what those of them that are not due wait for.
SELECT seq, CASE WHEN ready = 0 THEN waits_lane END AS wait FROM penstock.jobs
WHERE state = 'queued' AND deadline IS NOT NULL AND deadline <= :now
ORDER BY deadline LIMIT :limit FOR UPDATE SKIP LOCKED

-- name: unknown
-- Jobs enqueued where their kind was unknown.
SELECT seq, band, tenant, payload FROM penstock.jobs
WHERE ready > 0 AND ready = 1 AND lane = :unknown AND kind = :kind
ORDER BY band, turn, seq LIMIT :limit FOR UPDATE SKIP LOCKED

-- name: adopt
-- The first process that knows a kind fills in what was unknown at enqueue.
UPDATE penstock.jobs
SET timeout = coalesce(timeout, :timeout), max_retries = coalesce(max_retries, :max_retries)
WHERE seq = ANY (:seqs)

-- name: refuse
UPDATE penstock.jobs
SET state = 'failed', ready = 0, finished_at = :now, {set_error}, history = {with_record}
WHERE seq = ANY (:seqs)
RETURNING id, tenant, log

-- name: held
-- The jobs a member holds, locked in the order everybody locks jobs.
SELECT seq, id, kind, tenant, log, state, token, attempts, max_retries, crashes, started_at
FROM penstock.jobs WHERE holder = :member ORDER BY seq FOR UPDATE

-- name: taken_back
-- A job whose holder is gone. It is queued again, or buried when its attempts are spent.
UPDATE penstock.jobs
SET state = :state, ready = :ready, holder = NULL, token = token + 1, attempts = :attempts,
    crashes = :crashes, {error_taken},
    progress = CASE WHEN :state = 'queued' THEN 0 ELSE progress END,
    started_at = CASE WHEN :state = 'queued' THEN NULL ELSE started_at END,
    finished_at = :finished_at,
    history = CASE WHEN :record::text IS NULL THEN history ELSE {with_record} END
WHERE seq = :seq

-- name: error_taken [postgres]
error = coalesce(:error, error), error_type = coalesce(:error_type, error_type)

-- name: error_taken [sqlite]
error = coalesce(:error, error)

-- name: return_attempts
-- Failed runs of a job, the last of which ended it or put it off, have spent no attempt after all: it
-- is first in its line again.
UPDATE penstock.jobs
SET attempts = CASE WHEN attempts > :count THEN attempts - :count ELSE 0 END, run_at = :now,
    state = 'queued', finished_at = NULL, ready = CASE WHEN crashes > 0 THEN 2 ELSE 1 END
WHERE seq = :seq AND token = :token AND state IN ('queued', 'failed') AND attempts > 0
RETURNING tenant, log, id, kind, attempts

-- name: return_attempts_running
-- The same of a job that runs: this run counts, and if it is the one of :token, how it ends.
UPDATE penstock.jobs
SET attempts = CASE WHEN attempts > :count - (CASE WHEN token = :token THEN 1 ELSE 0 END)
                    THEN attempts - :count + (CASE WHEN token = :token THEN 1 ELSE 0 END)
                    ELSE 1 END
WHERE seq = :seq AND state = 'running'

-- name: return_attempts_since
-- The same of a job that has run once more: what came of that run stands.
UPDATE penstock.jobs
SET attempts = CASE WHEN attempts > :count THEN attempts - :count ELSE 0 END
WHERE seq = :seq AND token <> :token AND state IN ('queued', 'failed')

-- name: forget
-- A chunk of the finished jobs that are past the retention.
DELETE FROM penstock.jobs
WHERE seq = ANY (ARRAY(
    SELECT seq FROM penstock.jobs
    WHERE state IN ('completed', 'cancelled') AND finished_at < :before AND holder IS NULL
    ORDER BY finished_at LIMIT :limit FOR UPDATE SKIP LOCKED))
RETURNING tenant, log

-- name: any_past_unique
SELECT 1 FROM penstock.unique_jobs WHERE until < :now LIMIT 1

-- name: forget_unique
DELETE FROM penstock.unique_jobs WHERE (tenant, kind, burst) IN (
    SELECT tenant, kind, burst FROM penstock.unique_jobs WHERE until < :now
    ORDER BY until LIMIT :limit FOR UPDATE SKIP LOCKED)

-- name: forget_turns
-- A tenant that has had all its turns starts where everybody stands: its row says nothing.
DELETE FROM penstock.turns AS t
WHERE t.last <= (SELECT s.turn FROM penstock.served AS s WHERE s.lane = t.lane AND s.band = t.band)
