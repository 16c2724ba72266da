-- Of jobs that are queued (by an earlier statement, if again), those whose log is stopped are
-- cancelled: seqs, now. But not children of a job that may finish with them (see 0001_jobs.sql).
-- They are locked like those of any other cancel: who is enqueueing children of one is waited for.
UPDATE penstock.jobs AS j SET state = 'cancelled', ready = 0, finished_at = $2
WHERE j.seq = ANY (ARRAY(
    SELECT q.seq FROM penstock.jobs AS q
    WHERE q.seq = ANY ($1) AND q.state = 'queued'
      AND EXISTS (SELECT 1 FROM penstock.stopped_logs AS s
                  WHERE s.tenant = q.tenant AND s.log = q.log
                    AND NOT (q.attached AND EXISTS (
                        SELECT 1 FROM penstock.jobs AS p
                        WHERE p.id = q.parent_id AND p.state = 'running' AND p.tenant = s.tenant
                          AND p.log = s.log AND p.enqueued_at <= s.whole_before)))
    ORDER BY q.seq FOR UPDATE OF q))
RETURNING j.seq
