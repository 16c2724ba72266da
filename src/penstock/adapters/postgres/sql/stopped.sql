-- Whether each task (tenants, tasks) is stopped, in order.
SELECT s.task IS NOT NULL
FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS t (tenant, task, n)
LEFT JOIN penstock.stopped_tasks AS s ON s.tenant = t.tenant AND s.task = t.task
ORDER BY t.n
