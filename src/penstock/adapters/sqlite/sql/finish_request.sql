-- Keep the answer of a request, if it still holds its row. See 0005_server.sql.
UPDATE api_requests SET status = :status, headers = :headers, body = :body, at = :now
WHERE (tenant, route, key, id) = (:tenant, :route, :key, :id) AND status IS NULL
