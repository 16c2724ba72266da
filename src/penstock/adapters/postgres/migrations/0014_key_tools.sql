-- needs 1
--
-- The tools that a key may call, with blanks between them; null: it is not confined to tools. A server
-- of the version before does not know of it, so make no such key before all are new.
ALTER TABLE penstock.api_keys ADD COLUMN tools text;
