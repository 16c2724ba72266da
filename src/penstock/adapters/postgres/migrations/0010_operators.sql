-- needs 1
--
-- What operators look for and decide.

-- The jobs of a lane, newest first. Jobs without one are not in it, and cost nothing.
CREATE INDEX jobs_lane ON penstock.jobs (lane, seq) WHERE lane <> '' AND lane <> '?';

-- What an operator gives a lane instead of the configured limits; NULL: as configured.
--   limits  JSON, as it was given; the others follow from it
ALTER TABLE penstock.lanes
    ADD COLUMN limits text,
    ADD COLUMN own_spacing float8,
    ADD COLUMN own_tolerance float8,
    ADD COLUMN own_parallel integer,
    ADD COLUMN own_per_day integer;

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
