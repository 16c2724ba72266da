-- documents: one row per document; what is being made of its newest version, and which version
-- can be searched. Who changes a document's versions locks its row first.
--   generation  of the newest upload
--   live        the generation that can be searched, null while there is none
--   live_digest its digest: what is fetched may be the same
--   remote      the blob only says what to fetch: the original is not there yet
--   request     the blob that said what to fetch, null where it was uploaded: names the job
--   charset     the encoding of its text as a server has named it, for the parser; '' if none has
--   reading     JSON as text: how a page of the web was read, and what it says of itself
--   metadata, masked, error   JSON as text
--   times       seconds since 1970 on the queue's clock
CREATE TABLE penstock.documents (
    number      bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant      text COLLATE "C" NOT NULL,
    collection  text COLLATE "C" NOT NULL,
    id          text COLLATE "C" NOT NULL,
    generation  bigint NOT NULL,
    live        bigint,
    state       text COLLATE "C" NOT NULL,
    stage       text NOT NULL,
    progress    float8 NOT NULL,
    message     text NOT NULL,
    title       text NOT NULL,
    mime        text NOT NULL DEFAULT '',
    size        bigint NOT NULL,
    source      text NOT NULL,
    metadata    text NOT NULL,
    digest      text NOT NULL,
    blob        text NOT NULL,
    chunks      integer NOT NULL DEFAULT 0,
    masked      text NOT NULL DEFAULT '{}',
    error       text,
    accepted_at float8 NOT NULL,
    started_at  float8,
    finished_at float8,
    remote      boolean NOT NULL DEFAULT false,
    request     text,
    live_digest text,
    charset     text NOT NULL DEFAULT '',
    reading     text NOT NULL DEFAULT '{}'
);
CREATE UNIQUE INDEX documents_ref ON penstock.documents (tenant, collection, id);
CREATE INDEX documents_newest ON penstock.documents (tenant, generation);
-- What is asked of documents every few seconds, and of their originals now and then.
CREATE INDEX documents_processing ON penstock.documents (generation) WHERE state = 'processing';
CREATE INDEX documents_blob ON penstock.documents (blob);

-- texts: the text of a version, staged or live. Chunks are parts of it.
CREATE TABLE penstock.texts (
    document   bigint NOT NULL,
    generation bigint NOT NULL,
    text       text NOT NULL,
    PRIMARY KEY (document, generation)
);

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
