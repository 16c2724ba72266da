SELECT (SELECT min(run_at) FROM jobs WHERE state = 'queued' AND ready = 0),
       (SELECT min(deadline) FROM jobs WHERE state = 'queued' AND deadline IS NOT NULL)
