-- Lanes as configured and as operators limit them. See sql/tables/lanes.sql.

-- name: lane
-- The limits of a lane as configured now; what has happened in it stays.
INSERT INTO lanes (name, parent, spacing, tolerance, max_parallel, per_day, timeout,
                   breaker_first, breaker_cap, credentials, health_url, probe_seconds,
                   touched_at)
VALUES (:name, :parent, :spacing, :tolerance, :max_parallel, :per_day, :timeout,
        :breaker_first, :breaker_cap, :credentials, :health_url, :probe_seconds, :now)
ON CONFLICT (name) DO UPDATE
SET parent = excluded.parent, spacing = excluded.spacing, tolerance = excluded.tolerance,
    max_parallel = excluded.max_parallel, per_day = excluded.per_day,
    timeout = excluded.timeout,
    breaker_first = excluded.breaker_first, breaker_cap = excluded.breaker_cap,
    credentials = excluded.credentials,
    health_url = excluded.health_url, probe_seconds = excluded.probe_seconds
WHERE (parent, spacing, tolerance, max_parallel, per_day, timeout, breaker_first, breaker_cap,
       credentials, health_url, probe_seconds)
      IS NOT (excluded.parent, excluded.spacing, excluded.tolerance, excluded.max_parallel,
              excluded.per_day, excluded.timeout, excluded.breaker_first, excluded.breaker_cap,
              excluded.credentials, excluded.health_url, excluded.probe_seconds)

-- name: limit
-- What an operator gives a lane instead of the configured limits; all NULL: those again.
UPDATE lanes
SET limits = :limits, own_spacing = :own_spacing, own_tolerance = :own_tolerance,
    own_parallel = :own_parallel, own_per_day = :own_per_day
WHERE name = :name

-- name: forget_lanes
-- A lane nobody uses, in no trouble and as configured, is made again when somebody does.
DELETE FROM lanes
WHERE touched_at < :idle AND step = 0 AND suspect_at < :idle AND limits IS NULL AND slowdown = 1
  AND blocked_until < :now AND (per_day IS NULL OR day < :yesterday)
  AND NOT EXISTS (SELECT 1 FROM lines WHERE lines.lane = lanes.name)
  AND NOT EXISTS (SELECT 1 FROM slots WHERE slots.lane = lanes.name)
  AND NOT EXISTS (SELECT 1 FROM lanes AS child WHERE child.parent = lanes.name)
