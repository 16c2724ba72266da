-- Note that the children of these jobs (seqs), which were just cancelled, are to be, too.
INSERT INTO penstock.cascades (id)
SELECT p.id FROM penstock.jobs AS p
WHERE p.seq = ANY ($1)
  AND EXISTS (SELECT 1 FROM penstock.jobs AS j
              WHERE j.parent_id = p.id AND j.attached AND j.state IN ('queued', 'running'))
ORDER BY p.id
ON CONFLICT DO NOTHING
