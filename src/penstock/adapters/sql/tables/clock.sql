-- What survives a clock that jumps; see decision 69. A job that is queued for later (ready 0) has in
-- `since` when that was planned, by the clock its run_at was computed from: one from the future was
-- planned while the clock was ahead. suspect_failures: see penstock.lanes.state.
-- Lanes before jobs, as everybody locks them: processes of the version before are at work.
ALTER TABLE penstock.lanes ADD COLUMN suspect_failures integer NOT NULL DEFAULT 0;
CREATE INDEX jobs_put_off ON penstock.jobs (since) WHERE state = 'queued' AND ready = 0;
