-- chunks: some of a version, from the ordinal $4 on. Terms come joined by single spaces.
INSERT INTO penstock.chunks
    (document, generation, tenant, ordinal, text, start, "end", fresh, tokens, pages, section,
     hash, terms, script, length, lexemes)
SELECT $1, $2, $3, $4 + place - 1, text, start, "end", fresh, tokens, pages, section, hash,
       terms, script, cardinality(string_to_array(terms, ' ')),
       array_to_tsvector(
           ARRAY (SELECT $3::integer || ' ' || term || mark
                  FROM (SELECT term, count(*) AS times
                        FROM unnest(string_to_array(terms, ' ')) AS term GROUP BY term) AS held
                  JOIN (VALUES (1, ''), (2, ' 2'), (4, ' 4')) AS often (least, mark)
                  ON times >= least))
FROM unnest($5::text[], $6::integer[], $7::integer[], $8::integer[], $9::integer[], $10::text[],
            $11::text[], $12::text[], $13::text[], $14::text[]) WITH ORDINALITY
     AS c (text, start, "end", fresh, tokens, pages, section, hash, terms, script, place)
