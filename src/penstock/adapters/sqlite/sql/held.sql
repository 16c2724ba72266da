SELECT seq, id, tenant, task, state, token, attempts, max_retries, crashes, started_at
FROM jobs WHERE holder = :member
