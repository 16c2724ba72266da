-- Let a search read pages that its task, which is locked, has not yet, numbered after $5: $7 and
-- following, column by column. See 0005_research.sql.
INSERT INTO penstock.research_pages
    (tenant, task, search, run, number, hash, key, url, state, title, at)
SELECT $1, $2, $3, $4, $5::bigint + place, hash, key, url, 'waiting', '', $6::float8
FROM unnest($7::text[], $8::text[], $9::text[]) WITH ORDINALITY AS p (hash, key, url, place)
