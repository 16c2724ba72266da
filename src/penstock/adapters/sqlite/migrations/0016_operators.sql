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
