-- needs 1
--
-- What a job reserves of what its lane counts, and what a lane counts; see penstock.lanes.amounts.
-- Processes of the version before reserve nothing.
ALTER TABLE penstock.jobs ADD COLUMN amount text;
ALTER TABLE penstock.lanes ADD COLUMN amounts text, ADD COLUMN used text;
