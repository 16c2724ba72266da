-- The same but for those that are locked already (seqs). Who has one of these locked may be waiting
-- for the log, so nobody is waited for.
SELECT seq, id, tenant, log, state FROM penstock.jobs
WHERE tenant = $1 AND log = $2 AND state IN ('queued', 'running') AND seq <> ALL ($3)
ORDER BY seq FOR UPDATE NOWAIT
