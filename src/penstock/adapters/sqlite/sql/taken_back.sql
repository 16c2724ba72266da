-- A job whose holder is gone. It is queued again, or buried when its attempts are spent.
UPDATE jobs
SET state = :state, ready = :ready, holder = NULL, token = token + 1, attempts = :attempts,
    crashes = :crashes, error = coalesce(:error, error), progress = iif(:state = 'queued', 0, progress),
    started_at = iif(:state = 'queued', NULL, started_at), finished_at = :finished_at,
    history = iif(:record IS NULL, history, json_insert(
        CASE WHEN NOT json_valid(history) THEN '[]'
             WHEN json_array_length(history) < :history_limit THEN history
             ELSE json_remove(history, '$[1]') END,
        '$[#]', json(:record)))
WHERE seq = :seq
