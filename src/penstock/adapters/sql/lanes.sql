-- Lanes as operators see and control them, probes, and what is forgotten. Claims, permits and
-- settlements are each adapter's own. See tables/lanes.sql.

-- name: limit_columns
parent, spacing, tolerance, max_parallel, per_day, timeout, breaker_first, breaker_cap, credentials,
health_url, probe_seconds, amounts, auto

-- name: take_limits
SET parent = excluded.parent, spacing = excluded.spacing, tolerance = excluded.tolerance,
    max_parallel = excluded.max_parallel, per_day = excluded.per_day, timeout = excluded.timeout,
    breaker_first = excluded.breaker_first, breaker_cap = excluded.breaker_cap,
    credentials = excluded.credentials, health_url = excluded.health_url,
    probe_seconds = excluded.probe_seconds, amounts = excluded.amounts, auto = excluded.auto,
    learnt_parallel = CASE WHEN l.auto = excluded.auto THEN l.learnt_parallel END

-- name: limit
-- What an operator gives a lane instead of the configured limits; all NULL: those again.
UPDATE penstock.lanes
SET limits = :limits, own_spacing = :own_spacing, own_tolerance = :own_tolerance,
    own_parallel = :own_parallel, own_per_day = :own_per_day
WHERE name = :name

-- name: slots_of_jobs
-- The lanes in which jobs have a slot.
SELECT ref, lane FROM penstock.slots WHERE holder = :holder AND ref = ANY (:jobs)

-- name: wake_jobs
-- Jobs that wait for a lane which is not their own are due now.
UPDATE penstock.jobs SET run_at = :now, since = :now
WHERE waits_lane = :lane AND waits_lane IS NOT NULL AND state = 'queued' AND ready = 0
  AND run_at > :now

-- name: wake_lines
-- The lines of a lane and its children are to be looked at now.
UPDATE penstock.lines SET wake_at = 0, waits_for = NULL
WHERE lane = :lane OR lane = ANY (ARRAY(
    SELECT name FROM penstock.lanes WHERE parent = :lane AND parent IS NOT NULL))

-- name: look_now
-- The lines of lanes that were given back what was reserved too much are to be looked at now.
UPDATE penstock.lines SET wake_at = 0 WHERE lane = ANY (:lanes) AND wake_at > :now

-- name: wake_kinds
-- The lines of these kinds that wait for a slot are to be looked at again.
UPDATE penstock.lines SET wake_at = 0, waits_for = NULL
WHERE (lane, kind) IN (
    SELECT lane, kind FROM penstock.lines WHERE waits_for IS NOT NULL AND kind = ANY (:kinds)
    ORDER BY lane, kind FOR UPDATE)

-- name: lanes_ahead
-- Lanes that were written at a time which is still to come: the clock was set back.
SELECT name FROM penstock.lanes WHERE touched_at > penstock.clock()

-- name: any_ahead
SELECT 1 FROM penstock.lanes WHERE touched_at > penstock.clock()
UNION ALL SELECT 1 FROM penstock.lines WHERE since > penstock.clock() LIMIT 1

-- name: set_lines_back
UPDATE penstock.lines
SET since = :now, wake_at = CASE WHEN wake_at IS NULL THEN NULL ELSE 0 END
WHERE since > :now

-- name: to_probe
-- Lanes in trouble whose last probe is long enough ago.
FROM penstock.lanes
WHERE (step > 0 OR suspect IS NOT NULL) AND (step > 0 OR suspect_at + :suspicion > :now)
  AND probed_at + probe_seconds <= :now AND coalesce(health_url, address) IS NOT NULL

-- name: any_to_probe
SELECT 1 {to_probe} LIMIT 1

-- name: take_probes
SELECT name, coalesce(health_url, address) AS place {to_probe}
ORDER BY (parent IS NULL), name FOR UPDATE SKIP LOCKED

-- name: note_probes
UPDATE penstock.lanes SET probed_at = :now WHERE name = ANY (:names)

-- name: to_try
-- Lanes that a starting process may find well again.
SELECT name FROM penstock.lanes WHERE (step > 0 AND retry_at > :now) OR blocked_why = :blocked

-- name: forget_lanes
-- A lane nobody uses, in no trouble and as configured, is made again when somebody does.
DELETE FROM penstock.lanes
WHERE name = ANY (ARRAY(
    SELECT o.name FROM penstock.lanes AS o
    WHERE o.touched_at < :idle AND (coalesce(o.used, o.learnt) IS NULL OR o.touched_at < :long_idle) AND o.step = 0 AND o.suspect_at < :idle AND o.slowdown = 1
      AND o.limits IS NULL
      AND o.blocked_until < :now AND (o.per_day IS NULL OR o.day < :yesterday)
      AND NOT EXISTS (SELECT 1 FROM penstock.lines WHERE lines.lane = o.name)
      AND NOT EXISTS (SELECT 1 FROM penstock.slots WHERE slots.lane = o.name)
      AND NOT EXISTS (SELECT 1 FROM penstock.lanes AS child WHERE child.parent = o.name)
    FOR UPDATE SKIP LOCKED))

-- name: lost_slots
-- Slots of memberships that have ended, and of jobs that are not held by whom they are said to be.
-- One that is just being taken or given back is locked, or not to be seen yet.
DELETE FROM penstock.slots
WHERE (lane, holder, ref) IN (
    SELECT o.lane, o.holder, o.ref FROM penstock.slots AS o
    WHERE NOT EXISTS (SELECT 1 FROM penstock.processes AS p WHERE p.number = o.holder)
       OR o.ref > 0 AND NOT EXISTS (
           SELECT 1 FROM penstock.jobs AS j WHERE j.seq = o.ref AND j.holder = o.holder)
    FOR UPDATE OF o SKIP LOCKED)
RETURNING lane, holder, ref

-- name: ahead [postgres]
-- How many jobs stand before these in their lane's lines, counted up to a limit for each kind.
SELECT s.seq, sum(before.count)::bigint
FROM unnest(:seq::bigint[], :lane::text[], :band::integer[], :turn::float8[])
     AS s (seq, lane, band, turn)
CROSS JOIN LATERAL (
    SELECT count(*) FROM (SELECT 1) AS one
    CROSS JOIN LATERAL (
        SELECT h.seq FROM penstock.lines AS l
        CROSS JOIN (VALUES (1), (2)) AS r (ready)
        CROSS JOIN LATERAL (
            SELECT j.seq FROM penstock.jobs AS j
            WHERE j.ready > 0 AND j.ready = r.ready AND j.lane = s.lane AND j.kind = l.kind
              AND (j.band, j.turn, j.seq) < (s.band, s.turn, s.seq)
            LIMIT :far) AS h
        WHERE l.lane = s.lane) AS heads
) AS before
GROUP BY s.seq

-- name: ahead [sqlite]
SELECT jobs.seq, (
    SELECT coalesce(sum((SELECT count(*) FROM (
        SELECT 1 FROM jobs AS j
        WHERE j.ready > 0 AND j.ready = r.ready AND j.lane = lines.lane AND j.kind = lines.kind
          AND (j.band, j.turn, j.seq) < (jobs.band, jobs.turn, jobs.seq)
        LIMIT :far))), 0)
    FROM lines, (SELECT 1 AS ready UNION ALL SELECT 2) AS r WHERE lines.lane = jobs.lane)
FROM jobs WHERE seq IN (SELECT value FROM json_each(:seq))
