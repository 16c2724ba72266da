-- Of jobs that are queued again (:seqs), those whose task is stopped are cancelled instead.
UPDATE jobs SET state = 'cancelled', ready = 0, finished_at = :now
WHERE seq IN (SELECT value FROM json_each(:seqs)) AND state = 'queued'
  AND EXISTS (SELECT 1 FROM stopped_tasks AS s WHERE s.tenant = jobs.tenant AND s.task = jobs.task)
RETURNING seq
