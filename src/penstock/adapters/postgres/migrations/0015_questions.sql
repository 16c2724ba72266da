-- needs 4
--
-- Until when jobs leave a slot to questions; see penstock.lanes.permit. The slots of questions are
-- stored twice: in their lane, and under its name with "?" behind, where they are counted.
-- A line that waits for a slot has a time as well where a question has it reserved.
ALTER TABLE penstock.lanes ADD COLUMN asked_until float8 NOT NULL DEFAULT 0;
