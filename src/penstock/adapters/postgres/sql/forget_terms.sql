-- term_counts: of the lexemes of a version, those that no chunk holds any more.
DELETE FROM penstock.term_counts AS t
USING (SELECT DISTINCT lexeme FROM penstock.chunks CROSS JOIN LATERAL unnest(lexemes)
       WHERE document = $1 AND generation = $2) AS gone
WHERE t.lexeme = gone.lexeme AND t.chunks = 0
