-- Which of these ids need no more waiting: finished, or gone.
SELECT s.id FROM unnest($1::text[]) WITH ORDINALITY AS s (id, n)
LEFT JOIN penstock.jobs AS j ON j.id = s.id
WHERE j.state IS NULL OR j.state NOT IN ('queued', 'running')
ORDER BY s.n
