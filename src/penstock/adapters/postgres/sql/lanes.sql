-- Lanes, their lines and slots. See sql/tables/lanes.sql.

-- name: lane
-- The limits of lanes as configured now ($1, a JSON array of rows); what has happened in them
-- stays, and a row is not touched when nothing has changed.
INSERT INTO penstock.lanes AS l
    (name, parent, spacing, tolerance, max_parallel, per_day, timeout, breaker_first, breaker_cap,
     credentials, health_url, probe_seconds, touched_at)
SELECT n.name, n.parent, n.spacing, n.tolerance, n.max_parallel, n.per_day, n.timeout,
       n.breaker_first, n.breaker_cap, n.credentials, n.health_url, n.probe_seconds, $2
FROM jsonb_populate_recordset(NULL::penstock.lanes, $1) AS n
WHERE NOT EXISTS (
    SELECT 1 FROM penstock.lanes AS o
    WHERE o.name = n.name
      AND (o.parent, o.spacing, o.tolerance, o.max_parallel, o.per_day, o.timeout,
           o.breaker_first, o.breaker_cap, o.credentials, o.health_url, o.probe_seconds)
          IS NOT DISTINCT FROM
          (n.parent, n.spacing, n.tolerance, n.max_parallel, n.per_day, n.timeout,
           n.breaker_first, n.breaker_cap, n.credentials, n.health_url, n.probe_seconds))
ORDER BY (n.parent IS NULL), n.name
ON CONFLICT (name) DO UPDATE
SET parent = excluded.parent, spacing = excluded.spacing, tolerance = excluded.tolerance,
    max_parallel = excluded.max_parallel, per_day = excluded.per_day,
    timeout = excluded.timeout,
    breaker_first = excluded.breaker_first, breaker_cap = excluded.breaker_cap,
    credentials = excluded.credentials,
    health_url = excluded.health_url, probe_seconds = excluded.probe_seconds

-- name: assumed_lane
-- Lanes of which nothing is configured ($1, a JSON array of rows): what is assumed of them never
-- replaces what is known.
INSERT INTO penstock.lanes
    (name, parent, spacing, tolerance, max_parallel, per_day, timeout, breaker_first, breaker_cap,
     credentials, health_url, probe_seconds, touched_at)
SELECT n.name, n.parent, n.spacing, n.tolerance, n.max_parallel, n.per_day, n.timeout,
       n.breaker_first, n.breaker_cap, n.credentials, n.health_url, n.probe_seconds, $2
FROM jsonb_populate_recordset(NULL::penstock.lanes, $1) AS n
WHERE NOT EXISTS (SELECT 1 FROM penstock.lanes AS o WHERE o.name = n.name)
ORDER BY (n.parent IS NULL), n.name
ON CONFLICT DO NOTHING

-- name: limit
-- What an operator gives a lane ($1) instead of the configured limits; all NULL: those again.
UPDATE penstock.lanes
SET limits = $2, own_spacing = $3, own_tolerance = $4, own_parallel = $5, own_per_day = $6
WHERE name = $1

-- name: forget_lanes
-- A lane nobody uses, in no trouble and as configured, is made again when somebody does: idle since, now, yesterday.
DELETE FROM penstock.lanes AS l
WHERE l.name = ANY (ARRAY(
    SELECT o.name FROM penstock.lanes AS o
    WHERE o.touched_at < $1 AND o.step = 0 AND o.suspect_at < $1 AND o.slowdown = 1
      AND o.limits IS NULL
      AND o.blocked_until < $2 AND (o.per_day IS NULL OR o.day < $3)
      AND NOT EXISTS (SELECT 1 FROM penstock.lines WHERE lines.lane = o.name)
      AND NOT EXISTS (SELECT 1 FROM penstock.slots WHERE slots.lane = o.name)
      AND NOT EXISTS (SELECT 1 FROM penstock.lanes AS child WHERE child.parent = o.name)
    FOR UPDATE SKIP LOCKED))

-- name: lost_slots
-- Slots of memberships that have ended, and of jobs that are not held by whom they are said to be.
-- One that is just being taken or given back is locked, or not to be seen yet.
DELETE FROM penstock.slots AS s
USING (
    SELECT o.lane, o.holder, o.ref FROM penstock.slots AS o
    WHERE NOT EXISTS (SELECT 1 FROM penstock.processes AS p WHERE p.number = o.holder)
       OR o.ref > 0 AND NOT EXISTS (
           SELECT 1 FROM penstock.jobs AS j WHERE j.seq = o.ref AND j.holder = o.holder)
    FOR UPDATE SKIP LOCKED
) AS lost
WHERE s.lane = lost.lane AND s.holder = lost.holder AND s.ref = lost.ref
RETURNING s.lane, s.holder, s.ref

-- name: open_lines
-- Lines that jobs of a kind ($2) in a transaction still open are to join ($1: lanes). Were they
-- made in that transaction, everybody else who joins them would have to wait for its end.
INSERT INTO penstock.lines (lane, kind, wake_at, since)
SELECT l.lane, $2, penstock.clock() + 0.1, penstock.clock()
FROM unnest($1::text[]) AS l (lane) WHERE l.lane NOT IN ('', '?')
ON CONFLICT DO NOTHING

-- name: ready_lines
-- Lines of these kinds that are due, the longest waiting first: kinds, now, limit.
SELECT DISTINCT ON (first.wake_at, first.lane) first.lane
FROM unnest($1::text[]) AS k (kind) CROSS JOIN LATERAL (
    SELECT l.wake_at, l.lane FROM penstock.lines AS l
    WHERE l.kind = k.kind AND l.wake_at IS NOT NULL AND l.wake_at <= $2
    ORDER BY l.wake_at LIMIT $3) AS first
ORDER BY first.wake_at, first.lane

-- name: look_again
-- Say when lines of these kinds are looked at next: lanes, times, lanes whose slots they wait
-- for; kinds; now.
UPDATE penstock.lines AS l SET wake_at = s.wake_at, waits_for = s.waits_for, since = $5
FROM unnest($1::text[], $2::float8[], $3::text[]) AS s (lane, wake_at, waits_for)
WHERE l.lane = s.lane AND l.kind = ANY ($4)

-- name: unserved
-- Whether any of these lines (lanes, kinds) is still due.
SELECT EXISTS (
    SELECT 1 FROM unnest($1::text[], $2::text[]) AS s (lane, kind)
    JOIN penstock.lines AS l ON l.lane = s.lane AND l.kind = s.kind
    WHERE l.wake_at <= $3)

-- name: wake_lines
-- The lines of a lane and its children are to be looked at now.
UPDATE penstock.lines SET wake_at = 0, waits_for = NULL
WHERE lane = $1
   OR lane = ANY (ARRAY(SELECT name FROM penstock.lanes WHERE parent = $1 AND parent IS NOT NULL))

-- name: wake_jobs
-- Jobs that wait for a lane ($1) which is not their own are due now ($2).
UPDATE penstock.jobs SET run_at = $2
WHERE waits_lane = $1 AND waits_lane IS NOT NULL AND state = 'queued' AND ready = 0
  AND run_at > $2

-- name: wake_waiting
-- Lines that wait for slots of these lanes ($1, and $2 how many are free in each).
UPDATE penstock.lines AS l SET wake_at = 0, waits_for = NULL
FROM (
    SELECT w.lane, w.kind
    FROM unnest($1::text[], $2::integer[]) AS f (lane, count)
    CROSS JOIN (SELECT DISTINCT unnest(kinds) AS kind FROM penstock.processes) AS k
    CROSS JOIN LATERAL (
        SELECT o.lane, o.kind FROM penstock.lines AS o
        WHERE o.waits_for = f.lane AND o.kind = k.kind ORDER BY o.since LIMIT f.count) AS w
    ORDER BY w.lane, w.kind
) AS woken
WHERE l.lane = woken.lane AND l.kind = woken.kind
RETURNING l.lane, l.kind

-- name: ahead
-- How many jobs stand before these (seqs, lanes, bands, turns) in their lane's lines, counted up
-- to a limit for each kind.
SELECT s.seq, sum(before.count)::bigint
FROM unnest($1::bigint[], $2::text[], $3::integer[], $4::float8[]) AS s (seq, lane, band, turn)
CROSS JOIN LATERAL (
    SELECT count(*) FROM (SELECT 1) AS one
    CROSS JOIN LATERAL (
        SELECT h.seq FROM penstock.lines AS l
        CROSS JOIN (VALUES (1), (2)) AS r (ready)
        CROSS JOIN LATERAL (
            SELECT j.seq FROM penstock.jobs AS j
            WHERE j.ready > 0 AND j.ready = r.ready AND j.lane = s.lane AND j.kind = l.kind
              AND (j.band, j.turn, j.seq) < (s.band, s.turn, s.seq)
            LIMIT $5) AS h
        WHERE l.lane = s.lane) AS heads
) AS before
GROUP BY s.seq
