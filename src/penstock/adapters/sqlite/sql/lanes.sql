-- Lanes as configured and as operators limit them. See sql/tables/lanes.sql.

-- name: lane
-- The limits of a lane as configured now; what has happened in it stays.
INSERT INTO lanes AS l (name, {limit_columns}, touched_at)
VALUES (:name, :parent, :spacing, :tolerance, :max_parallel, :per_day, :timeout,
        :breaker_first, :breaker_cap, :credentials, :health_url, :probe_seconds, :amounts, :auto,
        :now)
ON CONFLICT (name) DO UPDATE {take_limits}
WHERE ({limit_columns})
      IS NOT (excluded.parent, excluded.spacing, excluded.tolerance, excluded.max_parallel,
              excluded.per_day, excluded.timeout, excluded.breaker_first, excluded.breaker_cap,
              excluded.credentials, excluded.health_url, excluded.probe_seconds, excluded.amounts,
              excluded.auto)
