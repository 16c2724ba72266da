-- Store searches of a task that is locked, as $3 and following, column by column. See
-- 0005_research.sql.
INSERT INTO penstock.research_searches
    (tenant, task, id, number, hash, query, wanted, priority, providers, state, run, queued_at)
SELECT $1, $2, *
FROM unnest($3::text[], $4::integer[], $5::text[], $6::text[], $7::integer[], $8::integer[],
            $9::text[], $10::text[], $11::integer[], $12::float8[])
