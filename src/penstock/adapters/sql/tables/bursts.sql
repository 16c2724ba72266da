-- jobs.debounce_key: of a job that is queued and was never claimed (so it has no token), enqueueing
-- another with this key replaces its payload. Later the column says only what it was.
ALTER TABLE penstock.jobs ADD COLUMN debounce_key text COLLATE "C";
CREATE UNIQUE INDEX jobs_debounce ON penstock.jobs (tenant, kind, debounce_key)
    WHERE debounce_key IS NOT NULL AND state = 'queued' AND token = 0;

-- unique_jobs: until when equal jobs are taken for one that was enqueued.
--   burst   a hash of its payload, or of the key it was given for this
--   job_id  the job that was stored; it may be gone, and then this says nothing
CREATE TABLE penstock.unique_jobs (
    tenant text COLLATE "C" NOT NULL,
    kind   text COLLATE "C" NOT NULL,
    burst  text COLLATE "C" NOT NULL,
    job_id text COLLATE "C" NOT NULL,
    until  float8 NOT NULL,
    PRIMARY KEY (tenant, kind, burst)
) WITH (fillfactor = 70);
CREATE INDEX unique_jobs_until ON penstock.unique_jobs (until);
