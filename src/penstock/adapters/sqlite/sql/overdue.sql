-- Queued jobs whose deadline has passed.
UPDATE jobs
SET state = 'failed', ready = 0, finished_at = :now, error = :error,
    history = json_insert(
        CASE WHEN NOT json_valid(history) THEN '[]'
             WHEN json_array_length(history) < :history_limit THEN history
             ELSE json_remove(history, '$[1]') END,
        '$[#]', json(:record))
WHERE seq IN (SELECT seq FROM jobs
              WHERE state = 'queued' AND deadline IS NOT NULL AND deadline <= :now LIMIT :limit)
RETURNING id, tenant, log
