-- The newest version of each log (tenants, logs), in order; 0 where there is none.
SELECT coalesce(l.version, 0)
FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS s (tenant, log, n)
LEFT JOIN penstock.logs AS l ON l.tenant = s.tenant AND l.log = s.log
ORDER BY s.n
