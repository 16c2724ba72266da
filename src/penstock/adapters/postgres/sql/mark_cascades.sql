-- Note that the children of these jobs (seqs), which were just cancelled, are to be, too. (A scalar
-- and not EXISTS, which may be planned as a look at the children of everybody.)
INSERT INTO penstock.cascades (id)
SELECT p.id FROM penstock.jobs AS p
WHERE p.seq = ANY ($1)
  AND (SELECT j.seq FROM penstock.jobs AS j
       WHERE j.parent_id = p.id AND j.attached AND j.state IN ('queued', 'running') LIMIT 1)
      IS NOT NULL
ORDER BY p.id
ON CONFLICT DO NOTHING
