SELECT seq, id, kind, tenant, task, state, token, attempts, max_retries, crashes, started_at
FROM jobs WHERE holder = :member
