-- What lanes learnt to tell apart; see penstock.lanes.state for what the columns mean.
ALTER TABLE lanes ADD COLUMN credentials INTEGER NOT NULL DEFAULT 1;
ALTER TABLE lanes ADD COLUMN refusers TEXT NOT NULL DEFAULT '[]';
ALTER TABLE lanes ADD COLUMN suspect_at REAL NOT NULL DEFAULT 0;
ALTER TABLE lanes ADD COLUMN day_offset REAL NOT NULL DEFAULT 0;
ALTER TABLE lanes DROP COLUMN refused;
