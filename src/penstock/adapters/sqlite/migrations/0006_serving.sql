-- serving: one row.
--   model   whose vectors searches compare with; null before the first document
--   next    the model whose vectors are being made to take its place; null: none
--   number  how often one was asked for, so that each time has a job of its own
CREATE TABLE serving (
    model  TEXT,
    next   TEXT,
    number INTEGER NOT NULL
);
INSERT INTO serving VALUES ((SELECT model FROM vectors ORDER BY number DESC LIMIT 1), NULL, 0);
