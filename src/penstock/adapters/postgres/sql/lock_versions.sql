-- documents: locked, in one order, as far as each version is still its newest: the place in the
-- lists, the number and the live generation.
SELECT v.place, d.number, d.live
FROM unnest($1::text[], $2::text[], $3::text[], $4::bigint[])
     WITH ORDINALITY AS v (tenant, collection, id, generation, place)
JOIN penstock.documents AS d
     ON (d.tenant, d.collection, d.id) = (v.tenant, v.collection, v.id)
        AND d.generation = v.generation
ORDER BY d.number
FOR UPDATE OF d
