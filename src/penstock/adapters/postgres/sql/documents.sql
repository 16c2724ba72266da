-- What only PostgreSQL has of documents: full text in a GIN index, vectors in pgvector. See
-- documents/migrations.

-- name: pgvector
-- pgvector in this database: the version that is installed or NULL, whether the server has it, and
-- whether this user may install it (a superuser, or whoever may create in the database where the
-- extension is trusted).
SELECT (SELECT extversion FROM pg_extension WHERE extname = 'vector'),
       EXISTS (SELECT 1 FROM pg_available_extensions WHERE name = 'vector'),
       coalesce((SELECT rolsuper FROM pg_roles WHERE rolname = current_user), false)
       OR (has_database_privilege(current_database(), 'CREATE')
           AND EXISTS (SELECT 1 FROM pg_available_extension_versions
                       WHERE name = 'vector' AND (trusted OR NOT superuser)))

-- name: stage_chunks
-- chunks: some of a version, from the ordinal $4 on. Terms, and the lexemes made of them, come
-- joined, by single spaces and by line ends.
INSERT INTO penstock.chunks
    (document, generation, tenant, ordinal, text, start, "end", fresh, tokens, pages, section,
     hash, terms, length, lexemes, script)
SELECT $1, $2, $3, $4 + place - 1, text, start, "end", fresh, tokens, pages, section, hash,
       terms, length, array_to_tsvector(string_to_array(lexemes, E'\n')), script
FROM unnest($5::text[], $6::integer[], $7::integer[], $8::integer[], $9::integer[], $10::text[],
            $11::text[], $12::text[], $13::text[], $14::integer[], $15::text[], $16::text[])
     WITH ORDINALITY
     AS c (text, start, "end", fresh, tokens, pages, section, hash, terms, length, lexemes, script,
           place)

-- name: lock_versions
-- documents: locked, in one order, as far as each version is still its newest: the place in the
-- lists, the number and the live generation.
SELECT v.place, d.number, d.live
FROM unnest($1::text[], $2::text[], $3::text[], $4::bigint[])
     WITH ORDINALITY AS v (tenant, collection, id, generation, place)
JOIN penstock.documents AS d
     ON (d.tenant, d.collection, d.id) = (v.tenant, v.collection, v.id)
        AND d.generation = v.generation
ORDER BY d.number
FOR UPDATE OF d

-- name: without_vector
-- chunks, vectors: how many chunks of each version have no vector of the model $3.
SELECT s.document, count(*) AS missing
FROM unnest($1::bigint[], $2::bigint[]) AS s (document, generation)
JOIN penstock.chunks AS c ON c.document = s.document AND c.generation = s.generation
WHERE NOT EXISTS (
    SELECT 1 FROM penstock.vectors AS v WHERE v.tenant = c.tenant AND v.hash = c.hash
    AND v.model = (SELECT number FROM penstock.models WHERE name = $3))
GROUP BY s.document

-- name: put_vectors
-- vectors: of a tenant ($1) by a model ($2), whose numbers all come in one list, $5 for each hash.
-- By hash, so that two who put the same ones wait for each other in one order.
INSERT INTO penstock.vectors (tenant, model, hash, vector)
SELECT $1, $2, hash, ($4::real[])[(place - 1) * $5 + 1 : place * $5]::vector
FROM unnest($3::text[]) WITH ORDINALITY AS v (hash, place)
ORDER BY hash
ON CONFLICT DO NOTHING

-- name: count_terms
-- term_counts: for each document of $1 the version of $3 takes the place of that of $2; either may
-- be null. Marked lexemes are not counted.
INSERT INTO penstock.term_counts AS t (lexeme, chunks)
SELECT lexeme, sum(sign)
FROM unnest($1::bigint[], $2::bigint[], $3::bigint[]) AS m (document, old, new)
CROSS JOIN LATERAL (
    SELECT CASE generation WHEN m.new THEN 1 ELSE -1 END AS sign, lexemes FROM penstock.chunks
    WHERE document = m.document AND generation IN (m.old, m.new)
) AS c
CROSS JOIN LATERAL unnest(tsvector_to_array(lexemes)) AS lexeme
WHERE lexeme NOT LIKE '% % %'
GROUP BY lexeme
HAVING sum(sign) <> 0
ON CONFLICT (lexeme) DO UPDATE SET chunks = t.chunks + excluded.chunks

-- name: forget_terms
-- term_counts: of the lexemes of versions, those that no chunk holds any more.
DELETE FROM penstock.term_counts AS t
USING (SELECT DISTINCT lexeme
       FROM unnest($1::bigint[], $2::bigint[]) AS m (document, old)
       CROSS JOIN LATERAL (
           SELECT lexemes FROM penstock.chunks WHERE document = m.document AND generation = m.old
       ) AS c
       CROSS JOIN LATERAL unnest(tsvector_to_array(lexemes)) AS lexeme) AS gone
WHERE t.lexeme = gone.lexeme AND t.chunks = 0

-- name: count_chunks
-- tenants: as in count_terms, for the tenant $4.
UPDATE penstock.tenants AS t SET chunks = t.chunks + c.chunks, terms = t.terms + c.terms
FROM (SELECT coalesce(sum(sign), 0) AS chunks, coalesce(sum(sign * length), 0) AS terms
      FROM unnest($1::bigint[], $2::bigint[], $3::bigint[]) AS m (document, old, new)
      CROSS JOIN LATERAL (
          SELECT CASE generation WHEN m.new THEN 1 ELSE -1 END AS sign, length
          FROM penstock.chunks WHERE document = m.document AND generation IN (m.old, m.new)
      ) AS signed) AS c
WHERE t.number = $4
