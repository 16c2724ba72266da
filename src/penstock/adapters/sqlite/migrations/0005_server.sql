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
--   key          SHA-256 of tenant, route and key (see hashed_key): it is only compared
--   fingerprint  of the request: under the same key, another one is a conflict
--   id           of the request that holds the row; only that one may end it
--   made         the id of what the request makes, by whoever carries it out for as long as the row
--                is there
--   at           while it is in progress (status null) when its lease ends, then when it was
--                answered: either way, what purging goes by
--   headers      JSON, pairs in a list
CREATE TABLE api_requests (
    tenant      TEXT NOT NULL,
    route       TEXT NOT NULL,
    key         TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    id          TEXT NOT NULL,
    made        TEXT NOT NULL,
    at          REAL NOT NULL,
    status      INTEGER,
    headers     TEXT,
    body        BLOB,
    UNIQUE (tenant, route, key)
);
CREATE INDEX api_requests_at ON api_requests (at);

-- actions: what callers of the server did to jobs, lanes and documents; kept for `actions_seconds`.
--   id      ordered by time
--   detail  JSON: figures, filters, limits; no payloads
CREATE TABLE actions (
    id       TEXT PRIMARY KEY,
    at       REAL NOT NULL,
    tenant   TEXT NOT NULL,
    key_id   TEXT,
    key_name TEXT NOT NULL,
    action   TEXT NOT NULL,
    subject  TEXT NOT NULL,
    detail   TEXT NOT NULL,
    outcome  TEXT NOT NULL
) WITHOUT ROWID;
CREATE INDEX actions_tenant ON actions (tenant, id);
CREATE INDEX actions_at ON actions (at);
