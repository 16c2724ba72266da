-- needs 1
--
-- jobs.trace: the span that enqueued a job, as a W3C traceparent; null where nobody traces.
--
-- The functions are those of 0002 and 0003 with it. They stand beside the first ones: processes of
-- the version before go on calling these.
ALTER TABLE penstock.jobs ADD COLUMN trace text;

-- See store_1.
CREATE FUNCTION penstock.store_2(
    ids text[], payloads text[], keys text[], lines integer[], places integer[],
    lanes text[], firsts float8[], step float8,
    of_tenant text, of_kind text, with_priority integer, start_at float8, until float8,
    with_timeout float8, retries integer, of_task text, of_parent text, anew boolean, of_trace text,
    at float8
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
                run_at, deadline, timeout, max_retries, task, parent_id, enqueued_at, trace)
            SELECT i.id, i.payload, i.key, lanes[i.line],
                   coalesce(firsts[i.line] + step * i.place, 0),
                   of_tenant, of_kind, with_priority, with_priority,
                   CASE WHEN firsts IS NULL THEN 0 ELSE 1 END, at,
                   CASE WHEN firsts IS NULL THEN start_at ELSE at END,
                   until, with_timeout, retries, of_task, of_parent, at, of_trace
            FROM unnest(ids, payloads, keys, lines, places)
                 WITH ORDINALITY AS i (id, payload, key, line, place, n)
            ORDER BY i.n
            ON CONFLICT DO NOTHING
            RETURNING id
        )
        SELECT array_agg(id) INTO more FROM new;
        IF of_task IS NOT NULL AND more IS NOT NULL THEN
            PERFORM penstock.log_changes_1(
                of_tenant, of_task, at, array_fill('queued'::text, ARRAY[cardinality(more)]), more,
                array_fill(json_build_object('kind', of_kind)::text, ARRAY[cardinality(more)]));
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

-- See enqueue_1.
CREATE PROCEDURE penstock.enqueue_2(
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
    standing := penstock.store_2(
        ids, payloads, keys, lines, places, lanes, firsts, step, of_tenant, of_kind,
        with_priority, start_at, until, with_timeout, retries, of_task, of_parent, anew,
        of_trace, at);
    COMMIT;
    PERFORM set_config('synchronous_commit', 'off', true);
    PERFORM penstock.ring(
        CASE WHEN of_task IS NULL THEN '{ready}'::text[] ELSE '{ready,finished}' END);
END $$;

-- See claim_1.
CREATE FUNCTION penstock.claim_2(
    member bigint, kinds text[], most integer, alone boolean, ordinary integer, at float8
) RETURNS TABLE (
    seq bigint, id text, kind text, tenant text, payload text, priority integer, lane text,
    key text, task text, parent_id text, enqueued_at float8, run_at float8, deadline float8,
    timeout float8, max_retries integer, attempts integer, crashes integer, releases integer,
    token bigint, history text, trace text
) LANGUAGE plpgsql
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off
SET plan_cache_mode = force_generic_plan
AS $$
#variable_conflict use_column
DECLARE
    picked  bigint[] := '{}';
    taken    bigint[];
    heads   bigint := 0;
    of_kind text;
    count   bigint;
    of_band integer;
    to_turn float8;
BEGIN
    IF alone THEN
        FOREACH of_kind IN ARRAY kinds LOOP
            picked := picked || ARRAY(
                SELECT j.seq FROM penstock.jobs AS j
                WHERE j.ready > 0 AND j.ready = 2 AND j.lane = '' AND j.kind = of_kind
                ORDER BY j.band, j.turn, j.seq LIMIT 1 FOR UPDATE SKIP LOCKED);
        END LOOP;
        IF cardinality(picked) > 1 THEN
            picked := ARRAY(SELECT j.seq FROM penstock.jobs AS j WHERE j.seq = ANY (picked)
                            ORDER BY j.band, j.turn, j.seq LIMIT 1);
        END IF;
        most := most - cardinality(picked);
    END IF;
    IF cardinality(kinds) = 1 THEN
        picked := picked || ARRAY(
            SELECT j.seq FROM penstock.jobs AS j
            WHERE j.ready > 0 AND j.ready = 1 AND j.lane = '' AND j.kind = kinds[1]
            ORDER BY j.band, j.turn, j.seq LIMIT most FOR UPDATE SKIP LOCKED);
    ELSE
        -- How many of each kind are among the first; then as many of each as are not taken.
        taken := '{}';
        FOR of_kind, count IN
            SELECT head.kind, count(*) FROM (
                SELECT k.kind, first.band, first.turn, first.seq
                FROM unnest(kinds) AS k (kind) CROSS JOIN LATERAL (
                    SELECT j.band, j.turn, j.seq FROM penstock.jobs AS j
                    WHERE j.ready > 0 AND j.ready = 1 AND j.lane = '' AND j.kind = k.kind
                    ORDER BY j.band, j.turn, j.seq LIMIT most) AS first
                ORDER BY first.band, first.turn, first.seq LIMIT most) AS head
            GROUP BY head.kind
        LOOP
            heads := heads + count;
            taken := taken || ARRAY(
                SELECT j.seq FROM penstock.jobs AS j
                WHERE j.ready > 0 AND j.ready = 1 AND j.lane = '' AND j.kind = of_kind
                ORDER BY j.band, j.turn, j.seq LIMIT count FOR UPDATE SKIP LOCKED);
        END LOOP;
        IF heads = most AND cardinality(taken) < most THEN
            -- Others were quicker; there may be more behind.
            FOREACH of_kind IN ARRAY kinds LOOP
                EXIT WHEN cardinality(taken) >= most;
                taken := taken || ARRAY(
                    SELECT j.seq FROM penstock.jobs AS j
                    WHERE j.ready > 0 AND j.ready = 1 AND j.lane = '' AND j.kind = of_kind
                      AND j.seq <> ALL (taken)
                    ORDER BY j.band, j.turn, j.seq LIMIT most - cardinality(taken)
                    FOR UPDATE SKIP LOCKED);
            END LOOP;
        END IF;
        picked := picked || taken;
    END IF;
    IF ordinary IS NOT NULL THEN
        picked := ARRAY(
            SELECT one.seq FROM (
                SELECT j.seq, j.priority, row_number() OVER (
                    PARTITION BY j.priority > 10 ORDER BY j.crashes = 0, j.band, j.turn, j.seq
                ) AS n
                FROM penstock.jobs AS j WHERE j.seq = ANY (picked)) AS one
            WHERE one.priority <= 10 OR one.n <= ordinary);
    END IF;
    IF cardinality(picked) = 0 THEN
        RETURN;
    END IF;
    -- The turn now served, unless somebody else is just writing it.
    FOR of_band, to_turn IN
        SELECT j.band, max(j.turn) FROM penstock.jobs AS j WHERE j.seq = ANY (picked)
        GROUP BY j.band
    LOOP
        PERFORM penstock.serve_1('', of_band, to_turn);
    END LOOP;
    RETURN QUERY
        WITH leased AS (
            UPDATE penstock.jobs AS j
            SET state = 'running', ready = 0, token = j.token + 1, attempts = j.attempts + 1,
                holder = member, started_at = at, waits_lane = NULL
            WHERE j.seq = ANY (picked)
            RETURNING j.*
        )
        SELECT l.seq, l.id, l.kind, l.tenant, l.payload, l.priority, l.lane, l.key, l.task,
               l.parent_id, l.enqueued_at, l.run_at, l.deadline, l.timeout, l.max_retries,
               l.attempts, l.crashes, l.releases, l.token,
               '[' || array_to_string(l.history, ',') || ']', l.trace
        FROM leased AS l ORDER BY l.crashes = 0, l.band, l.turn, l.seq;
END $$;

-- See exchange_1.
CREATE FUNCTION penstock.exchange_2(
    member bigint, seqs bigint[], tokens bigint[], starts float8[], ends float8[], results text[],
    kinds text[], most integer, alone boolean, ordinary integer, in_lanes boolean
) RETURNS TABLE (
    refused bigint[], is_member boolean, chores boolean, lines boolean, next_at float8, at float8,
    seq bigint, id text, kind text, tenant text, payload text, priority integer, lane text,
    key text, task text, parent_id text, enqueued_at float8, run_at float8, deadline float8,
    timeout float8, max_retries integer, attempts integer, crashes integer, releases integer,
    token bigint, history text, trace text
) LANGUAGE plpgsql AS $$
#variable_conflict use_variable
DECLARE
    count   integer := cardinality(seqs);
    settled bigint[];
    pending record;
BEGIN
    at := penstock.clock();
    IF count > 0 THEN
        settled := penstock.completed_1(seqs, tokens, starts, ends, results);
        IF cardinality(settled) > 0 THEN
            PERFORM penstock.ring('{finished}');
        END IF;
        IF cardinality(settled) < count THEN
            refused := penstock.refused_1(seqs, tokens);
        END IF;
    ELSE
        -- A claim that a crash of the server forgets leaves its jobs queued, as they were.
        PERFORM set_config('synchronous_commit', 'off', true);
    END IF;
    IF kinds IS NULL THEN
        is_member := EXISTS (SELECT 1 FROM penstock.processes AS p WHERE p.number = member);
        RETURN NEXT;
        RETURN;
    END IF;
    SELECT * INTO pending FROM penstock.pending_1(member, kinds, in_lanes, at);
    is_member := pending.is_member;
    chores := pending.chores;
    lines := pending.lines;
    next_at := pending.next_at;
    RETURN NEXT;
    IF is_member AND NOT chores AND NOT lines AND most > 0 THEN
        RETURN QUERY
            SELECT NULL::bigint[], NULL::boolean, NULL::boolean, NULL::boolean, NULL::float8,
                   NULL::float8, c.*
            FROM penstock.claim_2(
                member, kinds, most, alone AND pending.crashed, ordinary, at) AS c;
    END IF;
END $$;
