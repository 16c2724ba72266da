-- needs 1
--
-- documents
--   charset  the encoding of its text as a server has named it, for the parser; '' if none has
--   reading  JSON as text: how a page of the web was read, and what it says of itself
ALTER TABLE penstock.documents ADD COLUMN charset text NOT NULL DEFAULT '';
ALTER TABLE penstock.documents ADD COLUMN reading text NOT NULL DEFAULT '{}';
