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
