-- Whether each log (tenants, logs) is stopped, in order.
SELECT s.log IS NOT NULL
FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS t (tenant, log, n)
LEFT JOIN penstock.stopped_logs AS s ON s.tenant = t.tenant AND s.log = t.log
ORDER BY t.n
