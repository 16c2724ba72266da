-- Keep the answer of a request, if it still holds its row. See 0006_server.sql.
UPDATE penstock.api_requests SET status = $5, headers = $6, body = $7, at = $8
WHERE (tenant, route, key, id) = ($1, $2, $3, $4) AND status IS NULL
