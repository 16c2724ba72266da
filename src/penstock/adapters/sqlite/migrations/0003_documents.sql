-- Documents. Everything here is masked already.

-- tables: documents

-- generations: the last that was taken. That of an upload is greater than of any upload or delete
-- before, of any document, so that a slow one can tell that it is late even after a delete.
CREATE TABLE generations (last INTEGER NOT NULL);
INSERT INTO generations VALUES (0);
CREATE TRIGGER documents_added AFTER INSERT ON documents BEGIN
    UPDATE generations SET last = max(last, new.generation);
END;
CREATE TRIGGER documents_renewed AFTER UPDATE OF generation ON documents BEGIN
    UPDATE generations SET last = max(last, new.generation);
END;

-- chunks: of versions that are staged or live. Numbers are never used again.
--   pages, section  JSON; null, '[]' where there are none
--   hash            of the text, what its vector is kept under
--   terms           what full text search will know it by
CREATE TABLE chunks (
    number     INTEGER PRIMARY KEY AUTOINCREMENT,
    document   INTEGER NOT NULL,
    generation INTEGER NOT NULL,
    ordinal    INTEGER NOT NULL,
    text       TEXT NOT NULL,
    start      INTEGER NOT NULL,
    "end"      INTEGER NOT NULL,
    fresh      INTEGER NOT NULL,
    tokens     INTEGER NOT NULL,
    pages      TEXT,
    section    TEXT NOT NULL,
    hash       TEXT NOT NULL,
    terms      TEXT NOT NULL,
    script     TEXT NOT NULL
);
CREATE UNIQUE INDEX chunks_of ON chunks (document, generation, ordinal);
CREATE INDEX chunks_hash ON chunks (hash, document);

-- chunk_terms: full text of live chunks, by chunk number. Terms are made by the application, the
-- same for every store; `scope` holds one term for the tenant and one for its collection.
CREATE VIRTUAL TABLE chunk_terms USING fts5 (
    scope, terms, tokenize = "ascii tokenchars '_.-+#'"
);
CREATE VIRTUAL TABLE chunk_vocabulary USING fts5vocab (chunk_terms, col);

-- vectors: by what they are of, so that a text is embedded once: float32, little endian.
CREATE TABLE vectors (
    number  INTEGER PRIMARY KEY,
    tenant  TEXT NOT NULL,
    model   TEXT NOT NULL,
    hash    TEXT NOT NULL,
    vector  BLOB NOT NULL
);
CREATE UNIQUE INDEX vectors_of ON vectors (tenant, model, hash);

-- publications: what became live or ceased to be, in order, so that a process that keeps vectors
-- in memory can follow by increments. Old entries are removed; who is further behind reads anew.
CREATE TABLE publications (
    version  INTEGER PRIMARY KEY AUTOINCREMENT,
    tenant   TEXT NOT NULL,
    document INTEGER NOT NULL
);

-- models: whoever vectors were made by. All vectors of a model have one length.
CREATE TABLE models (
    name       TEXT PRIMARY KEY,
    dimensions INTEGER NOT NULL
);

-- unused_vectors: those that no chunk needs, or whose model neither serves nor is to, and since
-- when that is known. They are deleted after a while.
CREATE TABLE unused_vectors (
    tenant TEXT NOT NULL,
    model  TEXT NOT NULL,
    hash   TEXT NOT NULL,
    since  REAL NOT NULL,
    PRIMARY KEY (tenant, model, hash)
) WITHOUT ROWID;
