-- Lanes, their lines and slots. See sql/tables/lanes.sql.

-- name: lane
-- The limits of lanes as configured now ($1, a JSON array of rows); what has happened in them
-- stays, and a row is not touched when nothing has changed.
INSERT INTO penstock.lanes AS l (name, {limit_columns}, touched_at)
SELECT name, {limit_columns}, $2
FROM jsonb_populate_recordset(NULL::penstock.lanes, $1) AS n
WHERE NOT EXISTS (
    SELECT 1 FROM penstock.lanes AS o
    WHERE o.name = n.name
      AND (o.parent, o.spacing, o.tolerance, o.max_parallel, o.per_day, o.timeout,
           o.breaker_first, o.breaker_cap, o.credentials, o.health_url, o.probe_seconds,
           o.amounts, o.auto)
          IS NOT DISTINCT FROM
          (n.parent, n.spacing, n.tolerance, n.max_parallel, n.per_day, n.timeout,
           n.breaker_first, n.breaker_cap, n.credentials, n.health_url, n.probe_seconds,
           n.amounts, n.auto))
ORDER BY (n.parent IS NULL), n.name
ON CONFLICT (name) DO UPDATE {take_limits}

-- name: assumed_lane
-- Lanes of which nothing is configured ($1, a JSON array of rows): what is assumed of them never
-- replaces what is known.
INSERT INTO penstock.lanes (name, {limit_columns}, touched_at)
SELECT name, {limit_columns}, $2
FROM jsonb_populate_recordset(NULL::penstock.lanes, $1) AS n
WHERE NOT EXISTS (SELECT 1 FROM penstock.lanes AS o WHERE o.name = n.name)
ORDER BY (n.parent IS NULL), n.name
ON CONFLICT DO NOTHING

-- name: open_lines
-- Lines that jobs of a kind ($2) in a transaction still open are to join ($1: lanes). Were they
-- made in that transaction, everybody else who joins them would have to wait for its end.
INSERT INTO penstock.lines (lane, kind, wake_at, since)
SELECT l.lane, $2, penstock.clock() + 0.1, penstock.clock()
FROM unnest($1::text[]) AS l (lane) WHERE l.lane NOT IN ('', '?')
ON CONFLICT DO NOTHING

-- name: ready_lines
-- Lines of these kinds that are due, the longest waiting first: kinds, now, limit.
-- And whether there are budgets, or jobs that one has paused.
SELECT DISTINCT ON (first.wake_at, first.lane) first.lane,
       EXISTS (SELECT 1 FROM penstock.budgets) OR EXISTS (SELECT 1 FROM penstock.paused_lines)
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
