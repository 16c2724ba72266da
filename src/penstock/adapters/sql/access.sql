-- What the HTTP server remembers. See tables/server.sql.

-- name: key_columns
id, tenant, name, scopes, created_at, revoked_at, last_used_at, requests_per_minute, tools

-- name: add_key
INSERT INTO penstock.api_keys ({key_columns}, hash)
VALUES (:id, :tenant, :name, :scopes, :created_at, :revoked_at, :last_used_at,
        :requests_per_minute, :tools, :hash)

-- name: keys
SELECT {key_columns} FROM penstock.api_keys
WHERE :tenant::text IS NULL OR tenant = :tenant
ORDER BY id DESC

-- name: key_by_hash
-- `recent`: a use was noted less than so many seconds ago.
SELECT {key_columns}, coalesce(last_used_at, 0) > penstock.clock() - :seconds::float8 AS recent
FROM penstock.api_keys WHERE hash = :hash AND revoked_at IS NULL

-- name: note_use
UPDATE penstock.api_keys SET last_used_at = :now WHERE id = :id AND revoked_at IS NULL
RETURNING {key_columns}

-- name: revoke_key
UPDATE penstock.api_keys SET revoked_at = coalesce(revoked_at, :now) WHERE id = :id
RETURNING {key_columns}

-- name: request
(tenant, route, key) = (:tenant, :route, :key)

-- name: open_request
-- Not answered, and still held by whoever asks.
(tenant, route, key, id) = (:tenant, :route, :key, :id) AND status IS NULL

-- name: begin_request
-- Take an Idempotency-Key: nobody has it, or the lease of a like request is over. No row when it
-- is not to be had; whoever has it is locked then, so that its row can be read.
INSERT INTO penstock.api_requests AS held (tenant, route, key, fingerprint, id, at, made)
VALUES (:tenant, :route, :key, :fingerprint, :id, :until, :made)
ON CONFLICT (tenant, route, key) DO UPDATE
SET id = excluded.id, at = excluded.at
WHERE held.status IS NULL AND held.at <= :now AND held.fingerprint = excluded.fingerprint
RETURNING made

-- name: read_request
SELECT fingerprint, id, status, headers, body, made FROM penstock.api_requests WHERE {request}

-- name: finish_request
UPDATE penstock.api_requests SET status = :status, headers = :headers, body = :body, at = :now
WHERE {open_request}

-- name: abandon_request
DELETE FROM penstock.api_requests WHERE {open_request}

-- name: release_request
UPDATE penstock.api_requests SET at = :now WHERE {open_request}

-- name: purge_requests [postgres]
-- Forget some that were answered or lost before a time. One that is just being taken over is not
-- waited for.
DELETE FROM penstock.api_requests WHERE ctid = ANY (ARRAY(
    SELECT ctid FROM penstock.api_requests WHERE at < :before LIMIT :most FOR UPDATE SKIP LOCKED
))

-- name: purge_requests [sqlite]
DELETE FROM api_requests WHERE rowid IN (
    SELECT rowid FROM api_requests WHERE at < :before LIMIT :most
)

-- name: action_columns
id, at, tenant, key_id, key_name, action, subject, detail, outcome

-- name: record_action
-- What a caller did, or how that ended.
INSERT INTO penstock.actions ({action_columns})
VALUES (:id, :at, :tenant, :key_id, :key_name, :action, :subject, :detail, :outcome)
ON CONFLICT (id) DO UPDATE
SET subject = excluded.subject, detail = excluded.detail, outcome = excluded.outcome

-- name: actions
SELECT {action_columns} FROM penstock.actions WHERE id < :before ORDER BY id DESC LIMIT :limit

-- name: actions_of_tenant
SELECT {action_columns} FROM penstock.actions WHERE tenant = :tenant AND id < :before
ORDER BY id DESC LIMIT :limit

-- name: purge_actions
-- Forget some of what was done before a time.
DELETE FROM penstock.actions WHERE id = ANY (ARRAY(
    SELECT id FROM penstock.actions WHERE at < :before LIMIT :most FOR UPDATE SKIP LOCKED
))
