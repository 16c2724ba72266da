-- vectors: of a tenant ($1) by a model ($2), whose numbers all come in one list, $5 for each hash.
-- By hash, so that two who put the same ones wait for each other in one order.
INSERT INTO penstock.vectors (tenant, model, hash, vector)
SELECT $1, $2, hash, ($4::real[])[(place - 1) * $5 + 1 : place * $5]::vector
FROM unnest($3::text[]) WITH ORDINALITY AS v (hash, place)
ORDER BY hash
ON CONFLICT DO NOTHING
