-- needs 1
--
-- What is asked of documents every few seconds, and of their originals now and then.
CREATE INDEX documents_processing ON penstock.documents (generation) WHERE state = 'processing';
CREATE INDEX documents_blob ON penstock.documents (blob);

-- serving: one row. Whoever publishes shares its lock, so that no document becomes live without
-- a vector of the model that is just taking over.
--   model   whose vectors searches compare with; null before the first document
--   next    the model whose vectors are being made to take its place; null: none
--   number  how often one was asked for, so that each time has a job of its own
CREATE TABLE penstock.serving (
    model  text,
    next   text,
    number bigint NOT NULL
);
INSERT INTO penstock.serving VALUES (NULL, NULL, 0);
