-- term_counts: of the lexemes of versions, those that no chunk holds any more.
DELETE FROM penstock.term_counts AS t
USING (SELECT DISTINCT lexeme
       FROM unnest($1::bigint[], $2::bigint[]) AS m (document, old)
       CROSS JOIN LATERAL (
           SELECT lexemes FROM penstock.chunks WHERE document = m.document AND generation = m.old
       ) AS c
       CROSS JOIN LATERAL unnest(tsvector_to_array(lexemes)) AS lexeme) AS gone
WHERE t.lexeme = gone.lexeme AND t.chunks = 0
