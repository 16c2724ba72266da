-- needs 1
--
-- scans: what was read on the pages of a document that are pictures, until it is published or
-- deleted: the checkpoint of a job that pays for each page. Masked already.
--   basis   what was read, and by whom; of other bytes or by another reader it is worth nothing
--   masked  JSON as text: how many of each kind of personal data were replaced
CREATE TABLE penstock.scans (
    document bigint NOT NULL,
    page     integer NOT NULL,
    basis    text COLLATE "C" NOT NULL,
    text     text NOT NULL,
    masked   text NOT NULL,
    PRIMARY KEY (document, page)
);
