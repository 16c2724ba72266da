-- Queued jobs whose deadline has passed.
UPDATE jobs
SET state = 'failed', ready = 0, finished_at = :now, error = :error,
    history = json_insert(
        iif(json_array_length(history) < :history_limit, history, json_remove(history, '$[1]')),
        '$[#]', json(:record))
WHERE seq IN (SELECT seq FROM jobs
              WHERE state = 'queued' AND deadline IS NOT NULL AND deadline <= :now LIMIT :limit)
RETURNING id, tenant, task
