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
