-- needs 1
--
-- What operators look for and decide.

-- The jobs of a lane, newest first. Jobs without one are not in it, and cost nothing.
CREATE INDEX jobs_lane ON penstock.jobs (lane, seq) WHERE lane <> '' AND lane <> '?';
