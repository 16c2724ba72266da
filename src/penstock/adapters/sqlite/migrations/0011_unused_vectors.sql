-- models: whoever vectors were made by. All vectors of a model have one length.
CREATE TABLE models (
    name       TEXT PRIMARY KEY,
    dimensions INTEGER NOT NULL
);
INSERT INTO models SELECT model, length(vector) / 4 FROM vectors GROUP BY model;

-- unused_vectors: those that no chunk needs, or whose model neither serves nor is to, and since
-- when that is known. They are deleted after a while.
CREATE TABLE unused_vectors (
    tenant TEXT NOT NULL,
    model  TEXT NOT NULL,
    hash   TEXT NOT NULL,
    since  REAL NOT NULL,
    PRIMARY KEY (tenant, model, hash)
) WITHOUT ROWID;
CREATE INDEX chunks_hash ON chunks (hash, document);
ALTER TABLE vectors DROP COLUMN used_at;
