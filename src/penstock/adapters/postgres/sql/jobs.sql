-- Jobs: claimed, settled, taken back. What is called for every job is in functions: see
-- 0002_enqueue.sql and 0003_exchange.sql.
--
-- Values are numbered; what is settled comes as a list for each column.

-- name: due
-- Scheduled jobs whose time has come and that nobody else is just moving: now, limit.
SELECT seq, lane, band, tenant FROM penstock.jobs
WHERE state = 'queued' AND ready = 0 AND run_at <= $1 ORDER BY run_at, seq LIMIT $2
FOR UPDATE SKIP LOCKED

-- name: picked_columns
coalesce(strpos(j.waits_lane, E'\n') > 0, false), j.seq, j.id, j.kind, j.tenant, j.payload, j.priority, j.lane, j.key,
       j.log, j.parent_id, j.enqueued_at, j.run_at, j.deadline, j.timeout, j.max_retries,
       j.attempts + 1, j.crashes, j.releases, j.token + 1,
       '[' || array_to_string(j.history, ',') || ']', j.trace, 0.0::float8, 0.0::float8

-- name: pick_paused
-- The first in a line of jobs that a budget has paused: lane, kind, ready, how many.
SELECT w.band, w.turn, {picked_columns}
FROM (
    SELECT o.band, o.turn, o.seq, o.ctid AS version FROM penstock.jobs AS o
    WHERE o.ready > 0 AND o.ready = $3 AND o.lane = $1 AND o.kind = $2
    ORDER BY o.band, o.turn, o.seq LIMIT $4 FOR UPDATE SKIP LOCKED) AS w
JOIN penstock.jobs AS j ON j.seq = w.seq AND j.ctid = w.version
ORDER BY w.band, w.turn, w.seq

-- name: pick
-- The first in the lines of lanes: lanes, how many of each, kinds, and whether one job with a
-- crash on its record may be among them. A row is the lane's number, band, turn, whether it was
-- suspended (its reason has a newline), and a lease. What was locked in another version than this
-- statement sees is left for the next: its payload may have been replaced.
SELECT w.n, w.band, w.turn, {picked_columns}
FROM (
    SELECT l.n, head.ready, head.band, head.turn, head.seq, head.version
    FROM unnest($1::text[], $2::integer[]) WITH ORDINALITY AS l (lane, most, n)
    CROSS JOIN (SELECT 1 AS ready UNION ALL SELECT 2 WHERE $4) AS r
    CROSS JOIN LATERAL (
        SELECT r.ready, first.band, first.turn, first.seq, first.version
        FROM unnest($3::text[]) AS k (kind) CROSS JOIN LATERAL (
            SELECT o.band, o.turn, o.seq, o.ctid AS version FROM penstock.jobs AS o
            WHERE o.ready > 0 AND o.ready = r.ready AND o.lane = l.lane AND o.kind = k.kind
            ORDER BY o.band, o.turn, o.seq
            LIMIT CASE WHEN r.ready = 2 THEN 1 ELSE l.most END
            FOR UPDATE SKIP LOCKED) AS first
        ORDER BY first.band, first.turn, first.seq
        LIMIT CASE WHEN r.ready = 2 THEN 1 ELSE l.most END) AS head
) AS w
JOIN penstock.jobs AS j ON j.seq = w.seq AND j.ctid = w.version
ORDER BY w.n, w.ready DESC, w.band, w.turn, w.seq

-- name: lease
-- Claimed: the attempt is counted now, and given back if the run turns out not to have started.
UPDATE penstock.jobs
SET state = 'running', ready = 0, token = token + 1, attempts = attempts + 1,
    holder = $2, started_at = $3, waits_lane = NULL
WHERE seq = ANY ($1)

-- name: hold
-- Jobs waiting for a retry while their last run still occupies a thread: not yet.
-- A list for each of seq, id, token; until when; and the time.
UPDATE penstock.jobs AS j SET run_at = greatest(j.run_at, $4), ready = 0, since = $5
FROM unnest($1::bigint[], $2::text[], $3::bigint[]) AS s (seq, id, token)
WHERE {same_lease}
  AND j.state = 'queued'

-- name: same_lease
j.seq = s.seq AND j.id IS NOT DISTINCT FROM s.id AND j.token = s.token

-- name: of_failed_runs
-- A list for each of seq, id, token, started_at, finished_at, error, run_at, record, error_type, by
-- seq; the limit of the history; and who holds them.
FROM unnest($1::bigint[], $2::text[], $3::bigint[], $4::float8[], $5::float8[], $6::text[],
            $7::float8[], $8::text[], $9::text[])
     AS s (seq, id, token, started_at, finished_at, error, run_at, record, error_type)
WHERE {same_lease}
  AND j.holder IS NOT DISTINCT FROM $11 AND j.state = 'running'
RETURNING j.seq

-- name: failed
UPDATE penstock.jobs AS j
SET state = 'failed', holder = NULL, started_at = s.started_at, finished_at = s.finished_at,
    error = s.error, error_type = s.error_type,
    history = penstock.with_record(j.history, s.record, $10)
{of_failed_runs}

-- name: retry
UPDATE penstock.jobs AS j
SET state = 'queued', holder = NULL, started_at = NULL, error = s.error,
    error_type = s.error_type, run_at = s.run_at, since = s.finished_at, progress = 0, message = '',
    history = penstock.with_record(j.history, s.record, $10)
{of_failed_runs}

-- name: released
-- A list for each of seq, id, token, run_at, reason, waits_lane, when that was planned, record (or
-- null), by seq; the limit of the history; and who holds them.
UPDATE penstock.jobs AS j
SET state = 'queued', holder = NULL, started_at = NULL, attempts = j.attempts - 1,
    releases = j.releases + 1, run_at = s.run_at, since = s.planned_at, message = s.reason,
    waits_lane = s.waits_lane,
    history = CASE WHEN s.record IS NULL THEN j.history
                   ELSE penstock.with_record(j.history, s.record, $9) END
FROM unnest($1::bigint[], $2::text[], $3::bigint[], $4::float8[], $5::text[], $6::text[],
            $7::float8[], $8::text[])
     AS s (seq, id, token, run_at, reason, waits_lane, planned_at, record)
WHERE {same_lease}
  AND j.holder IS NOT DISTINCT FROM $10 AND j.state = 'running'
RETURNING j.seq

-- name: suspended
-- A list for each of seq, id, token, run_at, waits_lane, signal (or null), when it is due if that has
-- come, by seq; and who holds them. They are locked before: who sends a signal locks the job.
UPDATE penstock.jobs AS j
SET state = 'queued', holder = NULL, started_at = NULL, attempts = j.attempts - 1,
    run_at = CASE WHEN EXISTS (SELECT 1 FROM penstock.signals AS g
                               WHERE g.job = j.seq AND g.name = s.signal AND g.taken_by IS NULL)
                  THEN least(s.due, penstock.clock()) ELSE s.run_at END,
    since = penstock.clock(), waits_lane = s.waits_lane
FROM unnest($1::bigint[], $2::text[], $3::bigint[], $4::float8[], $5::text[], $6::text[],
            $7::float8[])
     AS s (seq, id, token, run_at, waits_lane, signal, due)
WHERE {same_lease}
  AND j.holder IS NOT DISTINCT FROM $8 AND j.state = 'running'
RETURNING j.seq

-- name: handed_back
-- A list for each of seq, id, token, run_at (null: it keeps its place in line), waits_lane, record
-- (or null), by seq; the limit of the history; and who holds them.
UPDATE penstock.jobs AS j
SET state = 'queued', holder = NULL, started_at = NULL, attempts = j.attempts - 1, progress = 0,
    message = '', waits_lane = s.waits_lane, run_at = coalesce(s.run_at, j.run_at),
    ready = CASE WHEN s.run_at IS NOT NULL THEN 0 WHEN j.crashes > 0 THEN 2 ELSE 1 END,
    since = CASE WHEN s.run_at IS NOT NULL THEN penstock.clock() ELSE j.since END,
    history = CASE WHEN s.record IS NULL THEN j.history
                   ELSE penstock.with_record(j.history, s.record, $7) END
FROM unnest($1::bigint[], $2::text[], $3::bigint[], $4::float8[], $5::text[], $6::text[])
     AS s (seq, id, token, run_at, waits_lane, record)
WHERE {same_lease}
  AND j.holder IS NOT DISTINCT FROM $8 AND j.state = 'running'
RETURNING j.seq

-- name: cancel_seen
-- The run of cancelled jobs has ended: a list for each of seq, id, token, by seq;
-- and who holds them.
UPDATE penstock.jobs AS j SET holder = NULL
FROM unnest($1::bigint[], $2::text[], $3::bigint[]) AS s (seq, id, token)
WHERE {same_lease}
  AND j.holder IS NOT DISTINCT FROM $4 AND j.state = 'cancelled'
RETURNING j.seq

-- name: progress
-- A list for each of seq, id, token, fraction (or null), message, lines to log of running jobs, by
-- seq; who holds them; and the limit of the log.
UPDATE penstock.jobs AS j
SET progress = coalesce(s.progress, j.progress),
    message = CASE WHEN s.progress IS NULL THEN j.message ELSE s.message END,
    lines = CASE WHEN s.lines = '' THEN j.lines ELSE right(coalesce(j.lines, '') || s.lines, $8) END
FROM unnest($1::bigint[], $2::text[], $3::bigint[], $4::float8[], $5::text[], $6::text[])
     AS s (seq, id, token, progress, message, lines)
WHERE {same_lease}
  AND j.holder IS NOT DISTINCT FROM $7 AND j.state = 'running'
RETURNING j.seq
