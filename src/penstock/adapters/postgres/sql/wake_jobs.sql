-- Jobs that wait for a lane ($1) which is not their own are due now ($2).
UPDATE penstock.jobs SET run_at = $2
WHERE waits_lane = $1 AND waits_lane IS NOT NULL AND state = 'queued' AND ready = 0
  AND run_at > $2
