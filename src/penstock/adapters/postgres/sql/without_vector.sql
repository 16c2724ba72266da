-- chunks, vectors: how many chunks of each version have no vector of the model $3.
SELECT s.document, count(*) AS missing
FROM unnest($1::bigint[], $2::bigint[]) AS s (document, generation)
JOIN penstock.chunks AS c ON c.document = s.document AND c.generation = s.generation
WHERE NOT EXISTS (
    SELECT 1 FROM penstock.vectors AS v WHERE v.tenant = c.tenant AND v.hash = c.hash
    AND v.model = (SELECT number FROM penstock.models WHERE name = $3))
GROUP BY s.document
