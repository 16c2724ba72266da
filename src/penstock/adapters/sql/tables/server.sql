-- What the HTTP server remembers.

-- api_keys: one row per key, kept when it is revoked.
--   hash    SHA-256 of the secret, which is stored nowhere
--   scopes  words with a blank between them
--   times   seconds since 1970 on the server's clock, but for created_at
CREATE TABLE penstock.api_keys (
    id                  text COLLATE "C" PRIMARY KEY,
    hash                text COLLATE "C" NOT NULL UNIQUE,
    tenant              text COLLATE "C" NOT NULL,
    name                text NOT NULL,
    scopes              text NOT NULL,
    created_at          float8 NOT NULL,
    revoked_at          float8,
    last_used_at        float8,
    requests_per_minute integer
);

-- api_requests: one row per Idempotency-Key of a tenant and route, from its first request until it
-- is purged.
--   key          SHA-256 of tenant, route and key (see hashed_key): it is only compared
--   fingerprint  of the request: under the same key, another one is a conflict
--   id           of the request that holds the row; only that one may end it
--   made         the id of what the request makes, by whoever carries it out for as long as the row
--                is there
--   at           while it is in progress (status null) when its lease ends, then when it was
--                answered: either way, what purging goes by
--   headers      JSON as text, pairs in a list
CREATE TABLE penstock.api_requests (
    tenant      text COLLATE "C" NOT NULL,
    route       text COLLATE "C" NOT NULL,
    key         text COLLATE "C" NOT NULL,
    fingerprint text COLLATE "C" NOT NULL,
    id          text COLLATE "C" NOT NULL,
    made        text COLLATE "C" NOT NULL,
    at          float8 NOT NULL,
    status      integer,
    headers     text,
    body        bytea,
    PRIMARY KEY (tenant, route, key)
);
CREATE INDEX api_requests_at ON penstock.api_requests (at);

-- actions: what callers of the server did to jobs, lanes and documents; kept for `actions_seconds`.
--   id      ordered by time
--   detail  JSON, as text: figures, filters, limits; no payloads
CREATE TABLE penstock.actions (
    id       text COLLATE "C" PRIMARY KEY,
    at       float8 NOT NULL,
    tenant   text COLLATE "C" NOT NULL,
    key_id   text,
    key_name text NOT NULL,
    action   text NOT NULL,
    subject  text NOT NULL,
    detail   text NOT NULL,
    outcome  text NOT NULL
);
CREATE INDEX actions_tenant ON penstock.actions (tenant, id);
CREATE INDEX actions_at ON penstock.actions (at);
