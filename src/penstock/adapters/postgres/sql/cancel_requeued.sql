-- Of jobs that were queued again, by an earlier statement, those whose task is stopped are cancelled
-- instead: seqs, now.
UPDATE penstock.jobs AS j SET state = 'cancelled', ready = 0, finished_at = $2
WHERE j.seq = ANY ($1) AND j.state = 'queued'
  AND EXISTS (SELECT 1 FROM penstock.stopped_tasks AS s
              WHERE s.tenant = j.tenant AND s.task = j.task)
RETURNING j.seq
