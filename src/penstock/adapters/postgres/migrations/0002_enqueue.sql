-- needs 1
--
-- Storing jobs. A tenant's turns are reserved under the lock of a row that all its enqueues
-- share, so that transaction is one of its own, over in microseconds and not waiting for the
-- disk: a turn that a crash forgets is given again, which harms nobody. The same goes for the
-- wake-up, whose lock all notifying transactions of a database share.

-- Reserve turns at the end of each line; the turn before the first, for each. Lanes come sorted,
-- so that two enqueues cannot lock each other out.
CREATE FUNCTION penstock.take_turns_1(
    lanes text[], of_band integer, of_tenant text, counts integer[], step float8
) RETURNS float8[] LANGUAGE plpgsql AS $$
DECLARE
    of_lane text;
    count   integer;
    first   float8;
    firsts  float8[] := '{}';
BEGIN
    FOR of_lane, count IN SELECT l.lane, l.count FROM unnest(lanes, counts) AS l (lane, count) LOOP
        LOOP
            SELECT greatest(t.last, (SELECT s.turn FROM penstock.served AS s
                                     WHERE s.lane = of_lane AND s.band = of_band))
            INTO first FROM penstock.turns AS t
            WHERE t.lane = of_lane AND t.band = of_band AND t.tenant = of_tenant FOR UPDATE;
            EXIT WHEN FOUND;
            INSERT INTO penstock.turns (lane, band, tenant, last)
            VALUES (of_lane, of_band, of_tenant, 0) ON CONFLICT DO NOTHING;
        END LOOP;
        UPDATE penstock.turns AS t SET last = first + step * count
        WHERE t.lane = of_lane AND t.band = of_band AND t.tenant = of_tenant;
        firsts := firsts || first;
    END LOOP;
    RETURN firsts;
END $$;

-- Only a run that goes on has children (its token, and the id of its membership): raises PK003
-- (detail: the parent) unless it does. Who would cancel the parent waits until the children are
-- committed, and sees them; its progress does not.
CREATE FUNCTION penstock.hold_parent_1(of_parent text, of_token bigint, of_member text)
RETURNS void LANGUAGE plpgsql
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off
AS $$
BEGIN
    PERFORM 1 FROM penstock.jobs AS j
    WHERE j.id = of_parent AND j.token = of_token AND j.state = 'running'
      AND EXISTS (SELECT 1 FROM penstock.processes AS p
                  WHERE p.number = j.holder AND p.id = of_member)
    FOR KEY SHARE;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'parent has ended' USING ERRCODE = 'PK003', DETAIL = of_parent;
    END IF;
END $$;

-- Store a batch of which some id or key may be taken; see store_1. Returns null when every job is
-- new, else for each item the id of the job that stands for it, null where that is new.
-- Raises PK001 when a key is taken by a job with another payload (detail: key, hint: its id).
CREATE FUNCTION penstock.store_or_find_1(
    ids text[], payloads text[], keys text[], lines integer[], places integer[],
    lanes text[], firsts float8[], step float8,
    of_tenant text, of_kind text, with_priority integer, start_at float8, until float8,
    with_timeout float8, retries integer, of_log text, of_parent text, with_parent boolean,
    anew boolean, of_trace text, of_rerun text, at float8
) RETURNS text[] LANGUAGE plpgsql
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off
AS $$
DECLARE
    made   text[] := '{}';
    more   text[];
    standing  text[];
    taken  record;
    missed boolean;
BEGIN
    IF anew THEN
        UPDATE penstock.jobs AS j SET key = NULL
        FROM unnest(ids, keys) AS i (id, key)
        WHERE j.tenant = of_tenant AND j.kind = of_kind AND j.key = i.key AND j.id <> i.id
          AND j.state IN ('failed', 'cancelled');
    END IF;
    LOOP
        WITH new AS (
            INSERT INTO penstock.jobs (
                id, payload, key, lane, turn, tenant, kind, priority, band, ready, since,
                run_at, deadline, timeout, max_retries, log, parent_id, attached, enqueued_at,
                trace, rerun_of)
            SELECT i.id, i.payload, i.key, lanes[i.line],
                   coalesce(firsts[i.line] + step * i.place, 0),
                   of_tenant, of_kind, with_priority, with_priority,
                   CASE WHEN firsts IS NULL THEN 0 ELSE 1 END, at,
                   CASE WHEN firsts IS NULL THEN start_at ELSE at END,
                   until, with_timeout, retries, of_log, of_parent, with_parent, at, of_trace,
                   of_rerun
            FROM unnest(ids, payloads, keys, lines, places)
                 WITH ORDINALITY AS i (id, payload, key, line, place, n)
            ORDER BY i.n
            ON CONFLICT DO NOTHING
            RETURNING id
        )
        SELECT array_agg(id) INTO more FROM new;
        IF of_log IS NOT NULL AND more IS NOT NULL THEN
            PERFORM penstock.log_changes_1(
                of_tenant, of_log, at, array_fill('queued'::text, ARRAY[cardinality(more)]), more,
                array_fill(json_build_object('kind', of_kind)::text, ARRAY[cardinality(more)]),
                CASE WHEN with_parent THEN of_parent END);
        END IF;
        made := made || more;
        IF cardinality(made) = cardinality(ids) THEN
            RETURN NULL;
        END IF;
        -- Some id or key is taken. Whoever took it is committed, or it would have been waited for.
        SELECT i.key, j.id INTO taken
        FROM unnest(ids, payloads, keys) AS i (id, payload, key)
        JOIN penstock.jobs AS j
             ON j.tenant = of_tenant AND j.kind = of_kind AND j.key = i.key
        WHERE j.payload <> i.payload
          AND NOT (anew AND j.state IN ('failed', 'cancelled'))
        LIMIT 1;
        IF FOUND THEN
            RAISE EXCEPTION 'key is taken'
                USING ERRCODE = 'PK001', DETAIL = taken.key, HINT = taken.id;
        END IF;
        SELECT array_agg(CASE WHEN m.id IS NULL THEN coalesce(k.id, o.id) END ORDER BY i.n),
               bool_or(m.id IS NULL AND k.id IS NULL AND o.id IS NULL)
        INTO standing, missed
        FROM unnest(ids, keys) WITH ORDINALITY AS i (id, key, n)
        LEFT JOIN unnest(made) AS m (id) ON m.id = i.id
        LEFT JOIN penstock.jobs AS o ON o.id = i.id
        LEFT JOIN penstock.jobs AS k
             ON k.tenant = of_tenant AND k.kind = of_kind AND k.key = i.key;
        IF NOT missed THEN
            RETURN standing;
        END IF;
        -- It was deleted meanwhile: there is room now.
    END LOOP;
END $$;

-- Store a batch, all of it or (with an error) nothing. Item n has ids[n], payloads[n], keys[n], and
-- place places[n] in the line of lanes[lines[n]]. `keys` is null where no item has one, as with most
-- batches: then no row has to be looked for first; `lines` and `places` where all join lanes[1], in
-- their order. `of_token` and `of_member` tell the run of `of_parent` that enqueues, null if none
-- does; `with_parent`: attached to it. Returns what store_or_find_1 does.
CREATE FUNCTION penstock.store_1(
    ids text[], payloads text[], keys text[], lines integer[], places integer[],
    lanes text[], firsts float8[], step float8,
    of_tenant text, of_kind text, with_priority integer, start_at float8, until float8,
    with_timeout float8, retries integer, of_log text, of_parent text, of_token bigint,
    of_member text, with_parent boolean, anew boolean, of_trace text, of_rerun text, at float8
) RETURNS text[] LANGUAGE plpgsql AS $$
DECLARE
    count integer := cardinality(ids);
BEGIN
    IF of_token IS NOT NULL THEN
        PERFORM penstock.hold_parent_1(of_parent, of_token, of_member);
    END IF;
    IF keys IS NULL THEN
        BEGIN
            INSERT INTO penstock.jobs (
                id, payload, lane, turn, tenant, kind, priority, band, ready, since,
                run_at, deadline, timeout, max_retries, log, parent_id, attached, enqueued_at,
                trace, rerun_of)
            SELECT i.id, i.payload, lanes[coalesce(i.line, 1)],
                   coalesce(firsts[coalesce(i.line, 1)] + step * coalesce(i.place, i.n), 0),
                   of_tenant, of_kind, with_priority, with_priority,
                   CASE WHEN firsts IS NULL THEN 0 ELSE 1 END, at,
                   CASE WHEN firsts IS NULL THEN start_at ELSE at END,
                   until, with_timeout, retries, of_log, of_parent, with_parent, at, of_trace,
                   of_rerun
            FROM unnest(ids, payloads, lines, places)
                 WITH ORDINALITY AS i (id, payload, line, place, n);
            IF of_log IS NOT NULL THEN
                PERFORM penstock.log_changes_1(
                    of_tenant, of_log, at, array_fill('queued'::text, ARRAY[count]), ids,
                    array_fill(json_build_object('kind', of_kind)::text, ARRAY[count]),
                    CASE WHEN with_parent THEN of_parent END);
            END IF;
            RETURN NULL;
        EXCEPTION WHEN unique_violation THEN
            NULL;  -- some id is taken: it is looked at below which
        END;
    END IF;
    RETURN penstock.store_or_find_1(
        ids, payloads, keys, coalesce(lines, array_fill(1, ARRAY[count])),
        coalesce(places, ARRAY(SELECT generate_series(1, count))), lanes, firsts, step, of_tenant,
        of_kind, with_priority, start_at, until, with_timeout, retries, of_log, of_parent,
        with_parent, anew, of_trace, of_rerun, at);
END $$;

-- Enqueue a batch in one round trip and three transactions: turns, jobs, wake-up. Arguments as for
-- store_1.
CREATE PROCEDURE penstock.enqueue_1(
    ids text[], payloads text[], keys text[], lines integer[], places integer[],
    lanes text[], counts integer[], step float8,
    of_tenant text, of_kind text, with_priority integer, start_at float8, until float8,
    with_timeout float8, retries integer, of_log text, of_parent text, of_token bigint,
    of_member text, with_parent boolean, anew boolean, of_trace text, of_rerun text,
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
    standing := penstock.store_1(
        ids, payloads, keys, lines, places, lanes, firsts, step, of_tenant, of_kind,
        with_priority, start_at, until, with_timeout, retries, of_log, of_parent, of_token,
        of_member, with_parent, anew, of_trace, of_rerun, at);
    COMMIT;
    PERFORM set_config('synchronous_commit', 'off', true);
    PERFORM penstock.ring(
        CASE WHEN of_log IS NULL THEN '{ready}'::text[] ELSE '{ready,finished}' END);
END $$;
