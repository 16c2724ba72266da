-- needs 1
--
-- Storing jobs without keys, which is most of them: no row has to be looked for first. The functions
-- stand beside those before, which processes of the version before go on calling.

-- See store_2. `keys` is null where no item has one; `lines` and `places` where all join lanes[1],
-- in their order.
CREATE FUNCTION penstock.store_3(
    ids text[], payloads text[], keys text[], lines integer[], places integer[],
    lanes text[], firsts float8[], step float8,
    of_tenant text, of_kind text, with_priority integer, start_at float8, until float8,
    with_timeout float8, retries integer, of_task text, of_parent text, anew boolean, of_trace text,
    at float8
) RETURNS text[] LANGUAGE plpgsql AS $$
DECLARE
    count integer := cardinality(ids);
BEGIN
    IF keys IS NULL THEN
        BEGIN
            INSERT INTO penstock.jobs (
                id, payload, lane, turn, tenant, kind, priority, band, ready, since,
                run_at, deadline, timeout, max_retries, task, parent_id, enqueued_at, trace)
            SELECT i.id, i.payload, lanes[coalesce(i.line, 1)],
                   coalesce(firsts[coalesce(i.line, 1)] + step * coalesce(i.place, i.n), 0),
                   of_tenant, of_kind, with_priority, with_priority,
                   CASE WHEN firsts IS NULL THEN 0 ELSE 1 END, at,
                   CASE WHEN firsts IS NULL THEN start_at ELSE at END,
                   until, with_timeout, retries, of_task, of_parent, at, of_trace
            FROM unnest(ids, payloads, lines, places)
                 WITH ORDINALITY AS i (id, payload, line, place, n);
            IF of_task IS NOT NULL THEN
                PERFORM penstock.log_changes_1(
                    of_tenant, of_task, at, array_fill('queued'::text, ARRAY[count]), ids,
                    array_fill(json_build_object('kind', of_kind)::text, ARRAY[count]));
            END IF;
            RETURN NULL;
        EXCEPTION WHEN unique_violation THEN
            NULL;  -- some id is taken: it is looked at below which
        END;
    END IF;
    RETURN penstock.store_2(
        ids, payloads, keys, coalesce(lines, array_fill(1, ARRAY[count])),
        coalesce(places, ARRAY(SELECT generate_series(1, count))), lanes, firsts, step, of_tenant,
        of_kind, with_priority, start_at, until, with_timeout, retries, of_task, of_parent, anew,
        of_trace, at);
END $$;

-- See enqueue_2; lists as for store_3.
CREATE PROCEDURE penstock.enqueue_3(
    ids text[], payloads text[], keys text[], lines integer[], places integer[],
    lanes text[], counts integer[], step float8,
    of_tenant text, of_kind text, with_priority integer, start_at float8, until float8,
    with_timeout float8, retries integer, of_task text, of_parent text, anew boolean,
    of_trace text,
    INOUT at float8, INOUT standing text[]
) LANGUAGE plpgsql AS $$
DECLARE
    firsts float8[];
BEGIN
    at := penstock.clock();
    IF start_at IS NULL OR start_at <= at THEN
        PERFORM set_config('synchronous_commit', 'off', true);
        firsts := penstock.take_turns_1(lanes, with_priority, of_tenant, counts, step);
        COMMIT;
        at := penstock.clock();
    END IF;
    standing := penstock.store_3(
        ids, payloads, keys, lines, places, lanes, firsts, step, of_tenant, of_kind,
        with_priority, start_at, until, with_timeout, retries, of_task, of_parent, anew,
        of_trace, at);
    COMMIT;
    PERFORM set_config('synchronous_commit', 'off', true);
    PERFORM penstock.ring(
        CASE WHEN of_task IS NULL THEN '{ready}'::text[] ELSE '{ready,finished}' END);
END $$;
