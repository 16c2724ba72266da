-- Take an Idempotency-Key: nobody has it, or the lease of a like request is over. No row when it
-- is not to be had. See 0005_server.sql.
INSERT INTO api_requests (tenant, route, key, fingerprint, id, at, made)
VALUES (:tenant, :route, :key, :fingerprint, :id, :until, :made)
ON CONFLICT (tenant, route, key) DO UPDATE
SET id = excluded.id, at = excluded.at
WHERE api_requests.status IS NULL
  AND api_requests.at <= :now
  AND api_requests.fingerprint = excluded.fingerprint
RETURNING made
