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
