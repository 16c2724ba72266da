-- Documents, their versions and what was made of them. See
-- tables/documents.sql and the migrations.

-- name: document_columns
d.number, d.tenant, d.collection, d.id, d.generation, d.live, d.state, d.stage AS phase,
d.progress, d.message, d.title, d.mime, d.size, d.source, d.metadata, d.chunks, d.masked, d.error,
d.accepted_at, d.started_at, d.finished_at, d.remote, d.charset, d.reading

-- name: chunk_columns
c.number AS chunk, c.ordinal, c.text, c.start, c."end", c.tokens, c.pages, c.section, c.script

-- name: this_document
(d.tenant, d.collection, d.id) = (:tenant, :collection, :id)

-- name: this_version
{this_document} AND d.generation = :generation

-- name: live_chunks
penstock.documents AS d JOIN penstock.chunks AS c
ON c.document = d.number AND c.generation = d.live

-- name: vector_of_chunk [postgres]
v.tenant = c.tenant AND v.hash = c.hash
AND v.model = (SELECT number FROM penstock.models WHERE name = :model)

-- name: vector_of_chunk [sqlite]
v.tenant = d.tenant AND v.hash = c.hash AND v.model = :model

-- name: next_generation [postgres]
penstock.next_generation_1()

-- name: next_generation [sqlite]
-- The time, or one more than the last where that is later: it tells a tenant nothing of how much
-- others upload. Triggers keep the last.
(SELECT max(last + 1, CAST(:now * 1000000 AS INTEGER)) FROM generations)

-- Metadata as PostgreSQL searches it.

-- name: facts_column [postgres]
facts,
-- name: facts_value [postgres]
:facts,
-- name: facts_update [postgres]
facts = excluded.facts,
-- name: facts_column [sqlite]
-- name: facts_value [sqlite]
-- name: facts_update [sqlite]

-- name: accept_document
-- An upload takes the next generation, unless the same is there, on its way, or has failed and is
-- not to be tried again; then no number is returned, and the row is locked all the same. In the
-- update the generation is taken after the wait for the lock, so whoever comes last has the
-- greatest. One that is still to be fetched keeps title and size: what is there may turn out to be
-- what is fetched.
INSERT INTO penstock.documents AS d
    (tenant, collection, id, generation, state, stage, progress, message, title, size, source,
     metadata, {facts_column} digest, blob, accepted_at, remote, request, charset)
VALUES
    (:tenant, :collection, :id, {next_generation}, 'processing', :phase, 0, '', :title, :size,
     :source, :metadata, {facts_value} :digest, :blob, :now, :remote, :request, :charset)
ON CONFLICT (tenant, collection, id) DO UPDATE SET
    generation = {next_generation}, state = excluded.state, stage = excluded.stage,
    progress = 0, message = '',
    title = CASE WHEN excluded.remote THEN d.title ELSE excluded.title END,
    size = CASE WHEN excluded.remote THEN d.size ELSE excluded.size END,
    charset = CASE WHEN excluded.remote THEN d.charset ELSE excluded.charset END,
    remote = excluded.remote, request = excluded.request, source = excluded.source,
    metadata = excluded.metadata, {facts_update}
    digest = excluded.digest, blob = excluded.blob, error = NULL,
    accepted_at = excluded.accepted_at, started_at = NULL, finished_at = NULL
WHERE d.digest <> excluded.digest OR (d.state = 'failed' AND :retry::boolean)
RETURNING number

-- name: read_document
SELECT {document_columns} FROM penstock.documents AS d WHERE {this_document}

-- name: lock_document
SELECT d.number, d.blob, d.live FROM penstock.documents AS d WHERE {this_document} FOR UPDATE

-- name: lock_version
-- A document, if this is its newest version.
SELECT d.number, d.live FROM penstock.documents AS d WHERE {this_version} FOR UPDATE

-- name: lock_remote
SELECT d.number, d.live_digest FROM penstock.documents AS d
WHERE {this_version} AND d.blob = :blob AND d.remote FOR UPDATE

-- name: arrived_document
UPDATE penstock.documents
SET blob = :blob, digest = :digest, size = :size, charset = :charset, remote = false
WHERE number = :number

-- name: same_document
-- What was fetched is what can be searched already.
UPDATE penstock.documents
SET generation = live, state = 'completed', stage = 'done', progress = 1, message = '',
    error = NULL, finished_at = :now
WHERE number = :number

-- name: other_document
UPDATE penstock.documents SET stage = 'waiting', title = :title WHERE number = :number

-- name: retry_document
UPDATE penstock.documents AS d
SET generation = {next_generation}, state = 'processing',
    stage = CASE WHEN remote THEN 'fetch' ELSE 'waiting' END, progress = 0, message = '',
    accepted_at = :now, started_at = NULL, finished_at = NULL
WHERE {this_version} AND d.state = 'failed'

-- name: mark_document
UPDATE penstock.documents AS d
SET state = :state, stage = :phase, progress = :progress, message = :message,
    error = coalesce(:error, error), started_at = coalesce(started_at, :now),
    finished_at = :finished_at
WHERE {this_version} AND d.live IS DISTINCT FROM d.generation

-- name: staged_document
UPDATE penstock.documents
SET title = :title, mime = :mime, chunks = :chunks, masked = :masked, reading = :reading
WHERE number = :document

-- name: publish_documents
UPDATE penstock.documents
SET live = generation, live_digest = digest, state = 'completed', stage = 'done', progress = 1,
    message = '', error = NULL, finished_at = :now, started_at = coalesce(started_at, :now)
WHERE number = ANY (:numbers)

-- name: delete_document
DELETE FROM penstock.documents WHERE number = :document

-- name: processing_documents
SELECT {document_columns}, d.blob, d.request FROM penstock.documents AS d
WHERE d.state = 'processing' AND d.generation > :after
  AND d.accepted_at < penstock.clock() - :older_than::float8
ORDER BY d.generation LIMIT :limit

-- name: count_processing
SELECT count(*) FROM penstock.documents
WHERE state = 'processing' AND tenant = :tenant
  AND (:collections::text[] IS NULL OR collection = ANY (:collections))

-- name: original
SELECT d.blob FROM penstock.documents AS d WHERE {this_document}

-- name: blobs_in_use
SELECT blob FROM penstock.documents
WHERE blob = ANY (:keys) AND (:published::boolean OR live IS DISTINCT FROM generation)

-- name: newest_documents
SELECT {document_columns} FROM penstock.documents AS d
WHERE d.tenant = :tenant
  AND (:collection::text IS NULL OR d.collection = :collection)
  AND (:states::text[] IS NULL OR d.state = ANY (:states))
  AND (:before::bigint IS NULL OR d.generation < :before)
ORDER BY d.generation DESC LIMIT :limit

-- name: collections
-- From one name to the next in the index: DISTINCT would read every document.
WITH RECURSIVE names (name) AS (
    SELECT min(collection) FROM penstock.documents WHERE tenant = :tenant
    UNION ALL
    SELECT (SELECT min(collection) FROM penstock.documents
            WHERE tenant = :tenant AND collection > name)
    FROM names WHERE name IS NOT NULL
)
SELECT name FROM names
WHERE name IS NOT NULL AND (:id::text IS NULL OR EXISTS (
    SELECT 1 FROM penstock.documents WHERE (tenant, collection, id) = (:tenant, name, :id)
))
ORDER BY name

-- name: live_text
SELECT t.text FROM penstock.documents AS d JOIN penstock.texts AS t
ON t.document = d.number AND t.generation = d.live
WHERE {this_document}

-- name: chunks_of_document
SELECT {chunk_columns} FROM {live_chunks} WHERE {this_document} ORDER BY c.ordinal

-- name: these_numbers [postgres]
unnest(:numbers::bigint[]) AS s (number)

-- name: these_numbers [sqlite]
(SELECT value AS number FROM json_each(:numbers)) AS s

-- name: places
-- Chunks that were found, and their documents.
SELECT {document_columns}, {chunk_columns}
FROM {these_numbers} JOIN penstock.chunks AS c ON c.number = s.number
JOIN penstock.documents AS d ON d.number = c.document

-- name: put_text
INSERT INTO penstock.texts (document, generation, text) VALUES (:document, :generation, :text)
ON CONFLICT (document, generation) DO UPDATE SET text = excluded.text

-- name: drop_staged
-- What an interrupted run may have left.
DELETE FROM penstock.chunks WHERE document = :document AND generation = :generation

-- name: drop_chunks
-- Of every version but one. What is kept is not read.
DELETE FROM penstock.chunks
WHERE document = :document AND generation IN (
    SELECT generation FROM penstock.texts
    WHERE document = :document AND generation IS DISTINCT FROM :keep::bigint
)

-- name: drop_texts
DELETE FROM penstock.texts
WHERE document = :document AND generation IS DISTINCT FROM :keep::bigint

-- name: read_scans
-- A row without a page: none is read yet. No row: it is not the newest version.
SELECT s.page, s.text, s.masked
FROM penstock.documents AS d
LEFT JOIN penstock.scans AS s ON s.document = d.number AND s.basis = :basis
WHERE {this_version}

-- name: put_scan
INSERT INTO penstock.scans (document, page, basis, text, masked)
VALUES (:document, :page, :basis, :text, :masked)
ON CONFLICT (document, page) DO UPDATE
SET basis = excluded.basis, text = excluded.text, masked = excluded.masked

-- name: drop_scans
DELETE FROM penstock.scans WHERE document = :document

-- name: to_embed
-- The staged texts of a version that have no vector of a model, each once, in their order. One row
-- of nulls: none is missing. No row: it is not the newest version.
SELECT c.hash, min(c.text) AS text
FROM penstock.documents AS d LEFT JOIN penstock.chunks AS c
ON c.document = d.number AND c.generation = d.generation
   AND NOT EXISTS (SELECT 1 FROM penstock.vectors AS v WHERE {vector_of_chunk})
WHERE {this_version}
GROUP BY c.hash ORDER BY min(c.ordinal)

-- name: live_without_vector
{live_chunks}
WHERE NOT EXISTS (SELECT 1 FROM penstock.vectors AS v WHERE {vector_of_chunk})

-- name: to_reembed
SELECT DISTINCT d.tenant, c.hash, c.text FROM {live_without_vector} LIMIT :limit

-- name: any_to_reembed
SELECT 1 FROM {live_without_vector} LIMIT 1

-- name: read_serving
SELECT model, next, number FROM penstock.serving

-- name: share_serving
{read_serving} FOR SHARE

-- name: lock_serving
{read_serving} FOR UPDATE

-- name: serve_first
UPDATE penstock.serving SET model = :model WHERE model IS NULL

-- name: want_model
UPDATE penstock.serving SET next = :next, number = number + 1

-- name: serve_next
UPDATE penstock.serving SET model = next, next = NULL

-- name: look_at_vectors [postgres]
-- The next ones behind a key, whether anything needs each, and since when that is known not to be so.
SELECT v.tenant, v.model, v.hash,
       (s.model IS NULL OR m.name IN (s.model, coalesce(s.next, s.model)))
       AND c.hash IS NOT NULL AS used, u.since
FROM (SELECT tenant, model, hash FROM penstock.vectors
      WHERE (tenant, model, hash) > (:tenant::integer, :model::integer, :hash::text)
      ORDER BY tenant, model, hash LIMIT :limit) AS v
JOIN penstock.models AS m ON m.number = v.model
CROSS JOIN penstock.serving AS s
LEFT JOIN LATERAL (SELECT hash FROM penstock.chunks
                   WHERE tenant = v.tenant AND hash = v.hash LIMIT 1) AS c ON true
LEFT JOIN LATERAL (SELECT since FROM penstock.unused_vectors
                   WHERE (tenant, model, hash) = (v.tenant, v.model, v.hash) OFFSET 0) AS u ON true
ORDER BY v.tenant, v.model, v.hash

-- name: look_at_vectors [sqlite]
SELECT v.tenant, v.model, v.hash,
       (s.model IS NULL OR v.model IS s.model OR v.model IS s.next)
       AND EXISTS (SELECT 1 FROM chunks JOIN documents ON documents.number = chunks.document
                   WHERE chunks.hash = v.hash AND documents.tenant = v.tenant) AS used,
       u.since
FROM vectors AS v CROSS JOIN serving AS s LEFT JOIN unused_vectors AS u USING (tenant, model, hash)
WHERE (v.tenant, v.model, v.hash) > (:tenant, :model, :hash)
ORDER BY v.tenant, v.model, v.hash LIMIT :limit

-- name: delete_vector
DELETE FROM penstock.vectors WHERE (tenant, model, hash) = (:tenant, :model, :hash)

-- name: forget_unused
DELETE FROM penstock.unused_vectors WHERE (tenant, model, hash) = (:tenant, :model, :hash)

-- name: note_unused
INSERT INTO penstock.unused_vectors (tenant, model, hash, since)
VALUES (:tenant, :model, :hash, :now)
