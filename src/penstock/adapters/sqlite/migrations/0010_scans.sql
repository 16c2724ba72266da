-- scans: what was read on the pages of a document that are pictures, until it is published or
-- deleted: the checkpoint of a job that pays for each page. Masked already.
--   basis   what was read, and by whom; of other bytes or by another reader it is worth nothing
--   masked  JSON: how many of each kind of personal data were replaced
CREATE TABLE scans (
    document INTEGER NOT NULL,
    page     INTEGER NOT NULL,
    basis    TEXT NOT NULL,
    text     TEXT NOT NULL,
    masked   TEXT NOT NULL,
    PRIMARY KEY (document, page)
);
