-- needs 1
--
-- jobs.attached: a child that is cancelled with its parent.
ALTER TABLE penstock.jobs ADD COLUMN attached boolean NOT NULL DEFAULT false;

CREATE INDEX jobs_attached ON penstock.jobs (parent_id)
    WHERE attached AND state IN ('queued', 'running');

-- cascades: jobs that were cancelled while attached children of theirs were not finished. Written in
-- the transaction that cancels them, deleted when the children are cancelled, too.
CREATE TABLE penstock.cascades (id text COLLATE "C" PRIMARY KEY);

-- stopped_tasks.whole_before: running jobs of the task that were enqueued by then may finish with
-- their children; null: none may.
ALTER TABLE penstock.stopped_tasks ADD COLUMN whole_before float8;

-- Only a run that goes on has children (its token, and the id of its membership): raises PK003 (detail: the parent) unless it does. Who would
-- cancel the parent waits until the children are committed, and sees them; its progress does not.
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

-- See log_changes_1. `of_parent` is whose attached children the jobs are: a stopped task may take them.
CREATE FUNCTION penstock.log_changes_2(
    of_tenant text, of_task text, at float8, whats text[], job_ids text[], datas text[],
    of_parent text
) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    last bigint;
    place xid8;
BEGIN
    LOOP
        SELECT l.version, l.feed INTO last, place FROM penstock.logs AS l
        WHERE l.tenant = of_tenant AND l.task = of_task FOR UPDATE;
        EXIT WHEN FOUND;
        INSERT INTO penstock.logs (tenant, task, version) VALUES (of_tenant, of_task, 0)
        ON CONFLICT DO NOTHING;
    END LOOP;
    IF whats[1] = 'queued' AND job_ids[1] <> '' AND EXISTS (
        SELECT 1 FROM penstock.stopped_tasks AS s
        WHERE s.tenant = of_tenant AND s.task = of_task AND NOT EXISTS (
            SELECT 1 FROM penstock.jobs AS p
            WHERE p.id = of_parent AND p.state = 'running' AND p.tenant = of_tenant
              AND p.task = of_task AND p.enqueued_at <= s.whole_before)) THEN
        RAISE EXCEPTION 'task is stopped' USING ERRCODE = 'PK002', DETAIL = of_task;
    END IF;
    -- Who wrote last has committed, or the row could not be had. An id that is not even given out
    -- yet came with a dump from another server, whose count is not this one's.
    IF place >= pg_snapshot_xmax(pg_current_snapshot()) THEN
        place := NULL;
    END IF;
    place := greatest(place, pg_current_xact_id());
    UPDATE penstock.logs AS l SET version = last + cardinality(job_ids), feed = place
    WHERE l.tenant = of_tenant AND l.task = of_task;
    INSERT INTO penstock.changes (tenant, task, version, at, what, job_id, data, feed)
    SELECT of_tenant, of_task, last + e.n, log_changes_2.at, e.what, e.job_id, e.data, place
    FROM unnest(whats, job_ids, datas) WITH ORDINALITY AS e (what, job_id, data, n);
END $$;

CREATE OR REPLACE FUNCTION penstock.log_changes_1(
    of_tenant text, of_task text, at float8, whats text[], job_ids text[], datas text[]
) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM penstock.log_changes_2(of_tenant, of_task, at, whats, job_ids, datas, NULL);
END $$;

-- See store_2: where some id or key may be taken. `with_parent`: attached to `of_parent`.
CREATE FUNCTION penstock.store_or_find_1(
    ids text[], payloads text[], keys text[], lines integer[], places integer[],
    lanes text[], firsts float8[], step float8,
    of_tenant text, of_kind text, with_priority integer, start_at float8, until float8,
    with_timeout float8, retries integer, of_task text, of_parent text, with_parent boolean,
    anew boolean, of_trace text, at float8
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
                run_at, deadline, timeout, max_retries, task, parent_id, attached, enqueued_at,
                trace)
            SELECT i.id, i.payload, i.key, lanes[i.line],
                   coalesce(firsts[i.line] + step * i.place, 0),
                   of_tenant, of_kind, with_priority, with_priority,
                   CASE WHEN firsts IS NULL THEN 0 ELSE 1 END, at,
                   CASE WHEN firsts IS NULL THEN start_at ELSE at END,
                   until, with_timeout, retries, of_task, of_parent, with_parent, at, of_trace
            FROM unnest(ids, payloads, keys, lines, places)
                 WITH ORDINALITY AS i (id, payload, key, line, place, n)
            ORDER BY i.n
            ON CONFLICT DO NOTHING
            RETURNING id
        )
        SELECT array_agg(id) INTO more FROM new;
        IF of_task IS NOT NULL AND more IS NOT NULL THEN
            PERFORM penstock.log_changes_2(
                of_tenant, of_task, at, array_fill('queued'::text, ARRAY[cardinality(more)]), more,
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

-- See store_3; `of_token` and `of_member` tell the run of `of_parent` that enqueues, null if none does.
CREATE FUNCTION penstock.store_4(
    ids text[], payloads text[], keys text[], lines integer[], places integer[],
    lanes text[], firsts float8[], step float8,
    of_tenant text, of_kind text, with_priority integer, start_at float8, until float8,
    with_timeout float8, retries integer, of_task text, of_parent text, of_token bigint,
    of_member text, with_parent boolean, anew boolean, of_trace text, at float8
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
                run_at, deadline, timeout, max_retries, task, parent_id, attached, enqueued_at,
                trace)
            SELECT i.id, i.payload, lanes[coalesce(i.line, 1)],
                   coalesce(firsts[coalesce(i.line, 1)] + step * coalesce(i.place, i.n), 0),
                   of_tenant, of_kind, with_priority, with_priority,
                   CASE WHEN firsts IS NULL THEN 0 ELSE 1 END, at,
                   CASE WHEN firsts IS NULL THEN start_at ELSE at END,
                   until, with_timeout, retries, of_task, of_parent, with_parent, at, of_trace
            FROM unnest(ids, payloads, lines, places)
                 WITH ORDINALITY AS i (id, payload, line, place, n);
            IF of_task IS NOT NULL THEN
                PERFORM penstock.log_changes_2(
                    of_tenant, of_task, at, array_fill('queued'::text, ARRAY[count]), ids,
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
        of_kind, with_priority, start_at, until, with_timeout, retries, of_task, of_parent,
        with_parent, anew, of_trace, at);
END $$;

-- See enqueue_3; arguments as for store_4.
CREATE PROCEDURE penstock.enqueue_4(
    ids text[], payloads text[], keys text[], lines integer[], places integer[],
    lanes text[], counts integer[], step float8,
    of_tenant text, of_kind text, with_priority integer, start_at float8, until float8,
    with_timeout float8, retries integer, of_task text, of_parent text, of_token bigint,
    of_member text, with_parent boolean, anew boolean, of_trace text,
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
    standing := penstock.store_4(
        ids, payloads, keys, lines, places, lanes, firsts, step, of_tenant, of_kind,
        with_priority, start_at, until, with_timeout, retries, of_task, of_parent, of_token,
        of_member, with_parent, anew, of_trace, at);
    COMMIT;
    PERFORM set_config('synchronous_commit', 'off', true);
    PERFORM penstock.ring(
        CASE WHEN of_task IS NULL THEN '{ready}'::text[] ELSE '{ready,finished}' END);
END $$;
