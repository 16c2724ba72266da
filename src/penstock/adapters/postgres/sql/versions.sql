-- The newest version of each log (tenants, tasks), in order; 0 where there is none.
SELECT coalesce(l.version, 0)
FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS s (tenant, task, n)
LEFT JOIN penstock.logs AS l ON l.tenant = s.tenant AND l.task = s.task
ORDER BY s.n
