-- Documents. Everything here is masked already.

-- documents: one row per document; what is being made of its newest version, and which version
-- can be searched.
--   generation  of the newest upload: greater than that of any upload or delete before, of any
--               document, so that a slow one can tell that it is late even after a delete
--   live        the generation that can be searched, null while there is none
--   live_digest its digest: what is fetched may be the same
--   remote      the blob only says what to fetch: the original is not there yet
--   request     the blob that said what to fetch, null where it was uploaded: names the job
--   charset     the encoding of its text as a server has named it, for the parser; '' if none has
--   reading     JSON: how a page of the web was read, and what it says of itself
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
    finished_at REAL,
    remote      INTEGER NOT NULL DEFAULT 0,
    request     TEXT,
    live_digest TEXT,
    charset     TEXT NOT NULL DEFAULT '',
    reading     TEXT NOT NULL DEFAULT '{}'
);
CREATE UNIQUE INDEX documents_ref ON documents (tenant, collection, id);
CREATE INDEX documents_newest ON documents (tenant, generation);
-- What is asked of documents every few seconds, and of their originals now and then.
CREATE INDEX documents_processing ON documents (generation) WHERE state = 'processing';
CREATE INDEX documents_blob ON documents (blob);

-- generations: the last that was taken.
CREATE TABLE generations (last INTEGER NOT NULL);
INSERT INTO generations VALUES (0);
CREATE TRIGGER documents_added AFTER INSERT ON documents BEGIN
    UPDATE generations SET last = max(last, new.generation);
END;
CREATE TRIGGER documents_renewed AFTER UPDATE OF generation ON documents BEGIN
    UPDATE generations SET last = max(last, new.generation);
END;

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

-- serving: one row.
--   model   whose vectors searches compare with; null before the first document
--   next    the model whose vectors are being made to take its place; null: none
--   number  how often one was asked for, so that each time has a job of its own
CREATE TABLE serving (
    model  TEXT,
    next   TEXT,
    number INTEGER NOT NULL
);
INSERT INTO serving VALUES (NULL, NULL, 0);

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
