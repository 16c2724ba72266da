-- How many requests at a time a lane has learnt that it takes; see penstock.lanes.learnt.
ALTER TABLE lanes ADD COLUMN auto TEXT;
ALTER TABLE lanes ADD COLUMN learnt TEXT;
ALTER TABLE lanes ADD COLUMN learnt_parallel INTEGER;
