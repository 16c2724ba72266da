-- needs 1
--
-- The next generation: the time, in microseconds, or one more than the last where that is later. So
-- it tells a tenant when its document was uploaded, and not how much others upload meanwhile.
CREATE FUNCTION penstock.next_generation_1() RETURNS bigint LANGUAGE sql VOLATILE AS $$
    SELECT setval('penstock.generations', greatest(
        nextval('penstock.generations'),
        (extract(epoch FROM clock_timestamp()) * 1000000)::bigint))
$$;
