-- needs 1
--
-- unused_vectors: those that no chunk needs, or whose model neither serves nor is to, and since
-- when that is known. They are deleted after a while. Beside the vectors, which are never updated.
CREATE TABLE penstock.unused_vectors (
    tenant integer NOT NULL,
    model  integer NOT NULL,
    hash   text COLLATE "C" NOT NULL,
    since  float8 NOT NULL,
    PRIMARY KEY (tenant, model, hash)
);
