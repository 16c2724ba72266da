-- Take an Idempotency-Key: nobody has it, or the lease of a like request is over. No row when it
-- is not to be had; whoever has it is locked then, so that its row can be read. See
-- 0006_server.sql.
INSERT INTO penstock.api_requests AS held (tenant, route, key, fingerprint, id, at, made)
VALUES ($1, $2, $3, $4, $5, $6, $8)
ON CONFLICT (tenant, route, key) DO UPDATE
SET id = excluded.id, at = excluded.at
WHERE held.status IS NULL AND held.at <= $7 AND held.fingerprint = excluded.fingerprint
RETURNING made
