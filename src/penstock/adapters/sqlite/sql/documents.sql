-- What only SQLite has of documents: full text in FTS5, and the publications that a matrix of
-- vectors in memory follows. See 0003_documents.sql.

-- name: put_chunk
INSERT INTO chunks (document, generation, ordinal, text, start, "end", fresh, tokens, pages,
                    section, hash, terms, script)
VALUES (:document, :generation, :ordinal, :text, :start, :end, :fresh, :tokens, :pages, :section,
        :hash, :terms, :script)

-- name: forget_terms
-- Of the version that can be searched.
DELETE FROM chunk_terms WHERE rowid IN (
    SELECT chunks.number FROM chunks JOIN documents
    ON documents.number = chunks.document AND documents.live = chunks.generation
    WHERE chunks.document = :document
)

-- name: index_terms
-- :scope are the terms by which full text search tells tenants and collections apart.
INSERT INTO chunk_terms (rowid, terms, scope)
SELECT number, terms, :scope FROM chunks
WHERE document = :document AND generation = :generation ORDER BY ordinal

-- name: note_publication
INSERT INTO publications (tenant, document) VALUES (:tenant, :document) RETURNING version

-- name: forget_publications
DELETE FROM publications WHERE version <= :version

-- name: take_generation
-- A delete takes one too, so that a slow upload can tell that it is late.
UPDATE generations SET last = max(last + 1, CAST(:now * 1000000 AS INTEGER))

-- name: missing_vectors
SELECT count(*) FROM documents AS d JOIN chunks AS c
ON c.document = d.number AND c.generation = d.generation
WHERE (d.tenant, d.collection, d.id) = (:tenant, :collection, :id) AND d.generation = :generation
  AND NOT EXISTS (SELECT 1 FROM vectors AS v
                  WHERE v.tenant = d.tenant AND v.hash = c.hash AND v.model = :model)

-- name: add_model
INSERT INTO models (name, dimensions) VALUES (:model, :dimensions) ON CONFLICT DO NOTHING

-- name: model_dimensions
SELECT dimensions FROM models WHERE name = :model

-- name: put_vector
INSERT INTO vectors (tenant, model, hash, vector) VALUES (:tenant, :model, :hash, :vector)
ON CONFLICT (tenant, model, hash) DO NOTHING
