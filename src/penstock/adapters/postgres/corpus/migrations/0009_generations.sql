-- needs 1
--
-- The next generation: the time, in microseconds, or one more than the last where that is later. Two
-- that came in the same microsecond could have the same, since nobody else may come between a look
-- at a sequence and its change. Now only nextval gives numbers out, and one at a time moves the
-- sequence on: by a millisecond more than the time, which is more than others take out meanwhile.
CREATE FUNCTION penstock.next_generation_2() RETURNS bigint LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    given bigint := nextval('penstock.generations');
    lock bigint := hashtextextended(
        'penstock generations ' || 'penstock.generations'::regclass::oid, 0);
BEGIN
    -- Who is not the one takes what there is, and waits for nobody: it may hold locks itself.
    IF given < extract(epoch FROM clock_timestamp()) * 1000000
        AND pg_try_advisory_xact_lock(lock)
    THEN
        given := nextval('penstock.generations');
        IF given < extract(epoch FROM clock_timestamp()) * 1000000 THEN
            given := setval('penstock.generations',
                (extract(epoch FROM clock_timestamp()) * 1000000)::bigint + 1000);
        END IF;
    END IF;
    RETURN given;
END
$$;
