-- The corpus. Everything here is masked already.

-- documents: one row per document; what is being made of its newest version, and which version
-- can be searched.
--   generation  of the newest upload: greater than that of any upload or delete before, of any
--               document, so that a slow one can tell that it is late even after a delete
--   live        the generation that can be searched, null while there is none
CREATE TABLE documents (
    number      INTEGER PRIMARY KEY AUTOINCREMENT,
    tenant      TEXT NOT NULL,
    collection  TEXT NOT NULL,
    id          TEXT NOT NULL,
    generation  INTEGER NOT NULL,
    live        INTEGER,
    state       TEXT NOT NULL,
    stage       TEXT NOT NULL,
    progress    REAL NOT NULL,
    message     TEXT NOT NULL,
    title       TEXT NOT NULL,
    mime        TEXT NOT NULL DEFAULT '',
    size        INTEGER NOT NULL,
    source      TEXT NOT NULL,
    metadata    TEXT NOT NULL,
    digest      TEXT NOT NULL,
    blob        TEXT NOT NULL,
    chunks      INTEGER NOT NULL DEFAULT 0,
    masked      TEXT NOT NULL DEFAULT '{}',
    error       TEXT,
    accepted_at REAL NOT NULL,
    started_at  REAL,
    finished_at REAL
);
CREATE UNIQUE INDEX documents_ref ON documents (tenant, collection, id);
CREATE INDEX documents_newest ON documents (tenant, generation);

CREATE TABLE generations (last INTEGER NOT NULL);
INSERT INTO generations VALUES (0);

-- texts: the text of a version, staged or live. Chunks are parts of it.
CREATE TABLE texts (
    document   INTEGER NOT NULL,
    generation INTEGER NOT NULL,
    text       TEXT NOT NULL,
    PRIMARY KEY (document, generation)
);

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
    vector  BLOB NOT NULL,
    used_at REAL NOT NULL
);
CREATE UNIQUE INDEX vectors_of ON vectors (tenant, model, hash);

-- publications: what became live or ceased to be, in order, so that a process that keeps vectors
-- in memory can follow by increments. Old entries are removed; who is further behind reads anew.
CREATE TABLE publications (
    version  INTEGER PRIMARY KEY AUTOINCREMENT,
    tenant   TEXT NOT NULL,
    document INTEGER NOT NULL
);
