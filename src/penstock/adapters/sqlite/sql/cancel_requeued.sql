-- Of jobs that are queued (:seqs), those whose log is stopped are cancelled; but not children of
-- a job that may finish with them (see 0001_jobs.sql).
UPDATE jobs SET state = 'cancelled', ready = 0, finished_at = :now
WHERE seq IN (SELECT value FROM json_each(:seqs)) AND state = 'queued'
  AND EXISTS (SELECT 1 FROM stopped_logs AS s WHERE s.tenant = jobs.tenant AND s.log = jobs.log
              AND NOT (jobs.attached = 1 AND EXISTS (
                  SELECT 1 FROM jobs AS parent
                  WHERE parent.id = jobs.parent_id AND parent.state = 'running'
                    AND parent.tenant = s.tenant AND parent.log = s.log
                    AND parent.enqueued_at <= s.whole_before)))
RETURNING seq
