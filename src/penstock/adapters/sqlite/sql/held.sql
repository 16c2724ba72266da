SELECT seq, id, kind, tenant, log, state, token, attempts, max_retries, crashes, started_at
FROM jobs WHERE holder = :member
