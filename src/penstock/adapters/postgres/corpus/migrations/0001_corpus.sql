-- needs 1
--
-- The corpus. Everything here is masked already. Read and applied as the queue's migrations are,
-- but noted in a table of their own.
--
-- Types of pgvector are looked for where that extension is, which need not be on anybody's path.
SELECT set_config('search_path', quote_ident(nspname) || ', pg_temp', true)
FROM pg_extension JOIN pg_namespace ON pg_namespace.oid = extnamespace WHERE extname = 'vector';

CREATE TABLE penstock.corpus_migrations (
    version    integer PRIMARY KEY,
    name       text NOT NULL,
    needs      integer NOT NULL,
    applied_at timestamptz NOT NULL DEFAULT now()
);

-- tenants: one row per tenant that ever had a document; never deleted.
--   number  stands for the tenant in chunks, lexemes and vectors
--   chunks, terms   how many live chunks there are, and terms in them; changed, as `term_counts`
--                   is, by whoever publishes or deletes, who locks this row first
CREATE TABLE penstock.tenants (
    number integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name   text COLLATE "C" NOT NULL UNIQUE,
    chunks bigint NOT NULL DEFAULT 0,
    terms  bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 50);

-- Generations: greater for every later upload of a document, also after a delete.
CREATE SEQUENCE penstock.generations;

-- documents: one row per document; what is being made of its newest version, and which version
-- can be searched. Who changes a document's versions locks its row first.
--   generation  of the newest upload
--   live        the generation that can be searched, null while there is none
--   metadata, masked, error   JSON as text
--   facts       the metadata to search by: '["key", value]' for each, in one spelling
--   times       seconds since 1970 on the server's clock
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
    facts       text[] COLLATE "C" NOT NULL,
    digest      text NOT NULL,
    blob        text NOT NULL,
    chunks      integer NOT NULL DEFAULT 0,
    masked      text NOT NULL DEFAULT '{}',
    error       text,
    accepted_at float8 NOT NULL,
    started_at  float8,
    finished_at float8
) WITH (fillfactor = 70);
CREATE UNIQUE INDEX documents_ref ON penstock.documents (tenant, collection, id);
CREATE INDEX documents_newest ON penstock.documents (tenant, generation);
CREATE INDEX documents_id ON penstock.documents (tenant, id);
CREATE INDEX documents_facts ON penstock.documents USING gin (facts);

-- texts: the text of a version, staged or live. Chunks are parts of it.
CREATE TABLE penstock.texts (
    document   bigint NOT NULL,
    generation bigint NOT NULL,
    text       text NOT NULL,
    PRIMARY KEY (document, generation)
);

-- chunks: of versions that are staged or live. Numbers are never used again.
--   pages, section  JSON as text
--   hash            of the text, what its vector is kept under
--   terms, length   what full text search knows it by, as often as it occurs, and how many
--   lexemes         the same, each once, behind the tenant's number: '7 word'. So the index reads
--                   nothing of other tenants, whose size and words cannot be told from its answers.
--                   Terms held twice or four times also have marked ones, '7 word 2' and
--                   '7 word 4': the index knows no other way to tell
CREATE TABLE penstock.chunks (
    number     bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant     integer NOT NULL,
    document   bigint NOT NULL,
    generation bigint NOT NULL,
    ordinal    integer NOT NULL,
    text       text NOT NULL,
    start      integer NOT NULL,
    "end"      integer NOT NULL,
    fresh      integer NOT NULL,
    tokens     integer NOT NULL,
    pages      text NOT NULL,
    section    text NOT NULL,
    hash       text COLLATE "C" NOT NULL,
    terms      text NOT NULL,
    length     integer NOT NULL,
    lexemes    tsvector NOT NULL,
    script     text NOT NULL
);
CREATE UNIQUE INDEX chunks_of ON penstock.chunks (document, generation, ordinal);
CREATE INDEX chunks_hash ON penstock.chunks (tenant, hash);
-- Without the list of entries yet to be sorted in, which every search would read to its end.
CREATE INDEX chunks_lexemes ON penstock.chunks USING gin (lexemes) WITH (fastupdate = off);

-- term_counts: how many live chunks hold a lexeme. Counting them in the index would read all of
-- them, of the most frequent words most.
CREATE TABLE penstock.term_counts (
    lexeme text COLLATE "C" PRIMARY KEY,
    chunks bigint NOT NULL
) WITH (fillfactor = 70);

-- models: whoever vectors were made by. Made by add_model_1 only, together with the index of its
-- vectors: an index needs one length for all.
CREATE TABLE penstock.models (
    number     integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name       text COLLATE "C" NOT NULL UNIQUE,
    dimensions integer NOT NULL
);

-- vectors: by what they are of, so that a text is embedded once; unit length. Never updated:
-- that would enter them into their index again. Kept in the row, because comparing one by one
-- would fetch each from elsewhere.
CREATE TABLE penstock.vectors (
    tenant integer NOT NULL,
    model  integer NOT NULL,
    hash   text COLLATE "C" NOT NULL,
    vector vector NOT NULL,
    PRIMARY KEY (tenant, model, hash)
) WITH (toast_tuple_target = 8160);

-- The number of a model, which is made if it is new. Many may call it at once. The index is made
-- while there is nothing to put into it, so nobody waits for long; by the owner of the tables,
-- because others may not. Half precision: what is found is compared again with whole vectors.
CREATE FUNCTION penstock.add_model_1(asked text, width integer) RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
    added integer;
BEGIN
    LOCK TABLE penstock.models IN SHARE ROW EXCLUSIVE MODE;
    INSERT INTO penstock.models (name, dimensions) VALUES (asked, width)
    ON CONFLICT (name) DO NOTHING RETURNING number INTO added;
    IF added IS NULL THEN
        RETURN (SELECT number FROM penstock.models WHERE name = asked);
    END IF;
    EXECUTE format(
        'CREATE INDEX vectors_near_%s ON penstock.vectors'
        ' USING hnsw ((vector::halfvec(%s)) halfvec_ip_ops) WHERE model = %s',
        added, width, added
    );
    RETURN added;
END
$$;
REVOKE ALL ON FUNCTION penstock.add_model_1 FROM PUBLIC;
