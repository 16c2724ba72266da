UPDATE jobs
SET state = 'queued', ready = 0, run_at = :now, attempts = 0, crashes = 0, releases = 0,
    token = token + 1, started_at = NULL, finished_at = NULL, progress = 0, message = '',
    deadline = iif(deadline <= :now, NULL, deadline),
    history = json_insert(
        CASE WHEN NOT json_valid(history) THEN '[]'
             WHEN json_array_length(history) < :history_limit THEN history
             ELSE json_remove(history, '$[1]') END,
        '$[#]', json(:record))
WHERE seq = :seq
