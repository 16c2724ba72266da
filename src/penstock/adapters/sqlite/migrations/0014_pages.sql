-- documents
--   charset  the encoding of its text as a server has named it, for the parser; '' if none has
--   reading  JSON: how a page of the web was read, and what it says of itself
ALTER TABLE documents ADD COLUMN charset TEXT NOT NULL DEFAULT '';
ALTER TABLE documents ADD COLUMN reading TEXT NOT NULL DEFAULT '{}';
