-- needs 1
--
-- jobs, from here on:
--   logs  what handlers logged with ctx.log, the last 64 KiB: a JSON array in each line (see
--         penstock.model.job_log); null where they have logged nothing
ALTER TABLE penstock.jobs ADD COLUMN logs text;
