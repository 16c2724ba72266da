-- What operators look for and decide.

-- The jobs of a lane, newest first. Jobs without one are not in it, and cost nothing.
CREATE INDEX jobs_lane ON jobs (lane, seq) WHERE lane NOT IN ('', '?');

-- What an operator gives a lane instead of the configured limits; NULL: as configured.
--   limits  JSON, as it was given; the others follow from it
ALTER TABLE lanes ADD COLUMN limits TEXT;
ALTER TABLE lanes ADD COLUMN own_spacing REAL;
ALTER TABLE lanes ADD COLUMN own_tolerance REAL;
ALTER TABLE lanes ADD COLUMN own_parallel INTEGER;
ALTER TABLE lanes ADD COLUMN own_per_day INTEGER;

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
