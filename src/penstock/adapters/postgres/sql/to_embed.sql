-- documents, chunks, vectors: the staged texts of a version that have no vector of the model $5,
-- each once, in their order. One row of nulls: none is missing. No row: it is not the newest.
SELECT c.hash, c.text
FROM penstock.documents AS d
LEFT JOIN LATERAL (
    SELECT DISTINCT ON (hash) hash, text, ordinal FROM penstock.chunks
    WHERE document = d.number AND generation = d.generation AND NOT EXISTS (
        SELECT 1 FROM penstock.vectors AS v
        WHERE v.tenant = chunks.tenant AND v.hash = chunks.hash
          AND v.model = (SELECT number FROM penstock.models WHERE name = $5))
    ORDER BY hash, ordinal
) AS c ON true
WHERE (d.tenant, d.collection, d.id) = ($1, $2, $3) AND d.generation = $4
ORDER BY c.ordinal
