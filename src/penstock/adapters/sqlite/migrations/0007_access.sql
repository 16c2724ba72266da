-- What the HTTP server remembers.

-- api_keys: one row per key, kept when it is revoked.
--   hash    SHA-256 of the secret, which is stored nowhere
--   scopes  words with a blank between them
CREATE TABLE api_keys (
    id                  TEXT PRIMARY KEY,
    hash                TEXT NOT NULL UNIQUE,
    tenant              TEXT NOT NULL,
    name                TEXT NOT NULL,
    scopes              TEXT NOT NULL,
    created_at          REAL NOT NULL,
    revoked_at          REAL,
    last_used_at        REAL,
    requests_per_minute INTEGER
) WITHOUT ROWID;

-- api_requests: one row per Idempotency-Key of a tenant and route, from its first request until it
-- is purged.
--   fingerprint  of the request: under the same key, another one is a conflict
--   id           of the request that holds the row; only that one may end it
--   lost         of the one it was taken over from
--   at           while it is in progress (status null) when its lease ends, then when it was
--                answered: either way, what purging goes by
--   headers      JSON, pairs in a list
CREATE TABLE api_requests (
    tenant      TEXT NOT NULL,
    route       TEXT NOT NULL,
    key         TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    id          TEXT NOT NULL,
    lost        TEXT,
    at          REAL NOT NULL,
    status      INTEGER,
    headers     TEXT,
    body        BLOB,
    UNIQUE (tenant, route, key)
);
CREATE INDEX api_requests_at ON api_requests (at);
