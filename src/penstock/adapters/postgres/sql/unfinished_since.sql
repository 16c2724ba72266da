-- The same but for those that are locked already (seqs). Who has one of these locked may be waiting
-- for the task's log, so nobody is waited for.
SELECT seq, id, tenant, task, state FROM penstock.jobs
WHERE tenant = $1 AND task = $2 AND state IN ('queued', 'running') AND seq <> ALL ($3)
ORDER BY seq FOR UPDATE NOWAIT
