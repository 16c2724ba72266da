-- term_counts: the version $3 of a document takes the place of $2; either may be null.
-- Marked lexemes are not counted.
INSERT INTO penstock.term_counts AS t (lexeme, chunks)
SELECT lexeme, sum(CASE generation WHEN $3 THEN 1 ELSE -1 END)
FROM penstock.chunks CROSS JOIN LATERAL unnest(lexemes)
WHERE document = $1 AND generation IN ($2::bigint, $3::bigint)
  AND lexeme NOT LIKE '% % %'
GROUP BY lexeme
HAVING sum(CASE generation WHEN $3 THEN 1 ELSE -1 END) <> 0
ON CONFLICT (lexeme) DO UPDATE SET chunks = t.chunks + excluded.chunks
