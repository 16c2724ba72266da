-- What a job reserves of what its lane counts, and what a lane counts; see penstock.lanes.amounts.
ALTER TABLE jobs ADD COLUMN amount TEXT;
ALTER TABLE lanes ADD COLUMN amounts TEXT;
ALTER TABLE lanes ADD COLUMN used TEXT;
