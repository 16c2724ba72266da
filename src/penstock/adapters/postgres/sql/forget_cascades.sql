-- Delete what is noted of parents (ids) that have no more children to be cancelled.
DELETE FROM penstock.cascades AS c
WHERE c.id = ANY ($1)
  AND (SELECT j.seq FROM penstock.jobs AS j
       WHERE j.parent_id = c.id AND j.attached AND j.state IN ('queued', 'running') LIMIT 1)
      IS NULL
