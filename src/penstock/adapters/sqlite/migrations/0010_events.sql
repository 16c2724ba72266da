-- Where each record stands among those of its job; see sql/tables/steps.sql.
ALTER TABLE steps ADD COLUMN position INTEGER;
CREATE INDEX steps_position ON steps (job, position) WHERE position IS NOT NULL;
