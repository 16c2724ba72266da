-- needs 1
--
-- Documents. Everything here is masked already. Read and applied as the queue's migrations are,
-- but noted in a table of their own.
--
-- Types of pgvector are looked for where that extension is, which need not be on anybody's path.
SELECT set_config('search_path', quote_ident(nspname) || ', pg_temp', true)
FROM pg_extension JOIN pg_namespace ON pg_namespace.oid = extnamespace WHERE extname = 'vector';

CREATE TABLE penstock.document_migrations (
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

-- The next generation: the time, in microseconds, or one more than the last where that is later. So
-- it tells a tenant when its document was uploaded, and not how much others upload meanwhile. Only
-- nextval gives numbers out, since others may come between a look at a sequence and its change; and
-- one at a time moves the sequence on, by a millisecond more than the time, which is more than
-- others take out meanwhile.
CREATE FUNCTION penstock.next_generation_1() RETURNS bigint LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    given bigint := nextval('penstock.generations');
    lock bigint := hashtextextended(
        'penstock generations ' || 'penstock.generations'::regclass::oid, 0);
BEGIN
    -- Who is not the one takes what there is, and waits for nobody: it may hold locks itself.
    IF given < extract(epoch FROM clock_timestamp()) * 1000000
        AND pg_try_advisory_xact_lock(lock)
    THEN
        given := nextval('penstock.generations');
        IF given < extract(epoch FROM clock_timestamp()) * 1000000 THEN
            given := setval('penstock.generations',
                (extract(epoch FROM clock_timestamp()) * 1000000)::bigint + 1000);
        END IF;
    END IF;
    RETURN given;
END
$$;

-- tables: documents
-- facts: the metadata to search by: '["key", value]' for each, in one spelling
ALTER TABLE penstock.documents
    ADD COLUMN facts text[] COLLATE "C" NOT NULL, SET (fillfactor = 70);
CREATE INDEX documents_id ON penstock.documents (tenant, id);
CREATE INDEX documents_facts ON penstock.documents USING gin (facts);

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
-- New entries go to a list of at most 1 MB, some five documents, and from there into
-- the index all at once, where a word that many of them hold is looked for once. A search
-- reads the list for each term, which costs it about 0.1 ms.
CREATE INDEX chunks_lexemes ON penstock.chunks USING gin (lexemes)
    WITH (fastupdate = on, gin_pending_list_limit = 1024);

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

-- unused_vectors: those that no chunk needs, or whose model neither serves nor is to, and since
-- when that is known. They are deleted after a while. Beside the vectors, which are never updated.
CREATE TABLE penstock.unused_vectors (
    tenant integer NOT NULL,
    model  integer NOT NULL,
    hash   text COLLATE "C" NOT NULL,
    since  float8 NOT NULL,
    PRIMARY KEY (tenant, model, hash)
);

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
