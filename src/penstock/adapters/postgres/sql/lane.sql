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
