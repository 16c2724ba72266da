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
