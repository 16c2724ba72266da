-- needs 1
--
-- How many requests at a time a lane has learnt that it takes; see penstock.lanes.learnt. Processes
-- of the version before go by what such a lane begins with.
ALTER TABLE penstock.lanes
    ADD COLUMN auto text, ADD COLUMN learnt text, ADD COLUMN learnt_parallel integer;
