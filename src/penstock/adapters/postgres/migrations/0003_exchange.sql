-- needs 1
--
-- The trip of a worker process: settle what has ended, claim what comes next. Their plans must
-- not depend on statistics: the table is empty when a session first plans them, and full of
-- other things a minute later. So they may not choose a scan of it, and plan once.
--
-- What proves a lease. After a failover to a replica that lagged behind, the sequences give out
-- numbers again: of jobs (seq) and of memberships (number). A row is found by them, but it is the
-- holder's only with the job's id, the token, and the random id of the membership. Ids of jobs come
-- back as well, where they are made of a key, a parent or a tick; so none of the three is enough.
--
-- "IS NOT DISTINCT FROM" keeps the planner from the indexes of these columns: jobs are found by seq.

-- Store completed runs whose lease still stands; the seqs of those stored. Batches come in the
-- order of seq, as all that lock several jobs do. Nothing, where the member is not who it takes
-- itself for.
CREATE FUNCTION penstock.completed_1(
    member bigint, by_id text, seqs bigint[], ids text[], tokens bigint[], starts float8[],
    ends float8[], results text[]
) RETURNS bigint[] LANGUAGE plpgsql
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off
SET plan_cache_mode = force_generic_plan
AS $$
DECLARE
    settled bigint[];
BEGIN
    IF EXISTS (SELECT 1 FROM penstock.processes AS p WHERE p.number = member AND p.id = by_id)
    THEN
        WITH stored AS (
            UPDATE penstock.jobs AS j
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

-- Which settlements do not stand: taken over, cancelled, or gone. One that was already stored
-- with the same token does stand. Of the member's cancelled ones, the run is over too.
CREATE FUNCTION penstock.refused_1(
    member bigint, by_id text, seqs bigint[], ids text[], tokens bigint[]
) RETURNS bigint[] LANGUAGE plpgsql
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off
AS $$
DECLARE
    refused bigint[];
BEGIN
    SELECT array_agg(s.seq) INTO refused
    FROM unnest(seqs, ids, tokens) AS s (seq, id, token)
    LEFT JOIN penstock.jobs AS j ON j.seq = s.seq
    WHERE j.id IS DISTINCT FROM s.id OR j.token IS DISTINCT FROM s.token
       OR j.holder IS NOT NULL OR j.state = 'cancelled';
    IF EXISTS (SELECT 1 FROM penstock.processes AS p WHERE p.number = member AND p.id = by_id)
    THEN
        UPDATE penstock.jobs AS j SET holder = NULL
        FROM unnest(seqs, ids, tokens) AS s (seq, id, token)
        WHERE j.seq = s.seq AND j.id IS NOT DISTINCT FROM s.id AND j.token = s.token
          AND j.holder IS NOT DISTINCT FROM member AND j.state = 'cancelled';
    END IF;
    RETURN coalesce(refused, '{}');
END $$;

-- Note how far a line has been served. It need not be exact, so nobody waits for it.
CREATE FUNCTION penstock.serve_1(of_lane text, of_band integer, to_turn float8)
RETURNS void LANGUAGE plpgsql
SET enable_seqscan = off
AS $$
DECLARE
    served float8;
BEGIN
    SELECT s.turn INTO served FROM penstock.served AS s
    WHERE s.lane = of_lane AND s.band = of_band;
    IF NOT FOUND THEN
        INSERT INTO penstock.served (lane, band, turn) VALUES (of_lane, of_band, to_turn)
        ON CONFLICT DO NOTHING;
    ELSIF served < to_turn THEN
        PERFORM 1 FROM penstock.served AS s
        WHERE s.lane = of_lane AND s.band = of_band FOR UPDATE SKIP LOCKED;
        IF FOUND THEN
            UPDATE penstock.served AS s SET turn = greatest(s.turn, to_turn)
            WHERE s.lane = of_lane AND s.band = of_band;
        END IF;
    END IF;
END $$;

-- Lease up to `most` jobs without a lane, of these kinds, the first in line first; one of them,
-- if `alone`, a job with a crash on its record. At most `ordinary` of less than high priority.
CREATE FUNCTION penstock.claim_1(
    member bigint, kinds text[], most integer, alone boolean, ordinary integer, at float8
) RETURNS TABLE (
    seq bigint, id text, kind text, tenant text, payload text, priority integer, lane text,
    key text, log text, parent_id text, enqueued_at float8, run_at float8, deadline float8,
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
        SELECT l.seq, l.id, l.kind, l.tenant, l.payload, l.priority, l.lane, l.key, l.log,
               l.parent_id, l.enqueued_at, l.run_at, l.deadline, l.timeout, l.max_retries,
               l.attempts, l.crashes, l.releases, l.token,
               '[' || array_to_string(l.history, ',') || ']', l.trace
        FROM leased AS l ORDER BY l.crashes = 0, l.band, l.turn, l.seq;
END $$;

-- What a claim by `member` must see to first, and when the next one is due. Each answer is one
-- look at the head of an index.
--   chores  there are lapsed members, or jobs that are due, overdue or of unknown lane
--   lines   there are lines of lanes to be looked at
CREATE FUNCTION penstock.pending_1(
    member bigint, by_id text, kinds text[], in_lanes boolean, at float8,
    OUT is_member boolean, OUT chores boolean, OUT lines boolean, OUT crashed boolean,
    OUT next_at float8
) LANGUAGE plpgsql
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off
SET plan_cache_mode = force_generic_plan
AS $$
DECLARE
    due      float8;
    deadline float8;
    look     float8;
BEGIN
    -- Locked, so that whoever ends this membership waits for what is claimed under it now.
    PERFORM 1 FROM penstock.processes AS p
    WHERE p.number = member AND p.id = by_id FOR KEY SHARE;
    is_member := FOUND;
    SELECT j.run_at INTO due FROM penstock.jobs AS j
    WHERE j.state = 'queued' AND j.ready = 0 ORDER BY j.run_at LIMIT 1;
    SELECT j.deadline INTO deadline FROM penstock.jobs AS j
    WHERE j.state = 'queued' AND j.deadline IS NOT NULL ORDER BY j.deadline LIMIT 1;
    IF in_lanes THEN
        SELECT min(first.wake_at) INTO look
        FROM unnest(kinds) AS k (kind) CROSS JOIN LATERAL (
            SELECT l.wake_at FROM penstock.lines AS l
            WHERE l.kind = k.kind AND l.wake_at IS NOT NULL ORDER BY l.wake_at LIMIT 1) AS first;
    END IF;
    next_at := least(due, deadline, look);
    lines := coalesce(look <= at, false);
    chores := coalesce(least(due, deadline) <= at, false)
        OR EXISTS (SELECT 1 FROM penstock.processes AS p
                   WHERE p.lease_until < at AND p.number <> member)
        OR EXISTS (SELECT 1 FROM penstock.jobs AS j
                   WHERE j.ready > 0 AND j.ready = 1 AND j.lane = '?' AND j.kind = ANY (kinds));
    crashed := EXISTS (SELECT 1 FROM penstock.jobs AS j
                       WHERE j.ready > 0 AND j.ready = 2 AND j.lane = ''
                         AND j.kind = ANY (kinds));
END $$;

-- The plain trip, one round trip for settling and claiming. The first row has no job but:
--   refused    settlements that do not stand
--   is_member, chores, lines, next_at   as `pending_1` says; with chores or lines nothing was
--              claimed, because there is more to it
--   at         the queue's clock
-- The other rows are leases. `kinds` null: only settle.
CREATE FUNCTION penstock.exchange_1(
    member bigint, by_id text, seqs bigint[], ids text[], tokens bigint[], starts float8[],
    ends float8[], results text[], kinds text[], most integer, alone boolean, ordinary integer,
    in_lanes boolean
) RETURNS TABLE (
    refused bigint[], is_member boolean, chores boolean, lines boolean, next_at float8, at float8,
    seq bigint, id text, kind text, tenant text, payload text, priority integer, lane text,
    key text, log text, parent_id text, enqueued_at float8, run_at float8, deadline float8,
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
        settled := penstock.completed_1(member, by_id, seqs, ids, tokens, starts, ends, results);
        IF cardinality(settled) > 0 THEN
            PERFORM penstock.ring('{finished}');
        END IF;
        IF cardinality(settled) < count THEN
            refused := penstock.refused_1(member, by_id, seqs, ids, tokens);
        END IF;
    ELSE
        -- A claim that a crash of the server forgets leaves its jobs queued, as they were.
        PERFORM set_config('synchronous_commit', 'off', true);
    END IF;
    IF kinds IS NULL THEN
        is_member := EXISTS (
            SELECT 1 FROM penstock.processes AS p WHERE p.number = member AND p.id = by_id);
        RETURN NEXT;
        RETURN;
    END IF;
    SELECT * INTO pending FROM penstock.pending_1(member, by_id, kinds, in_lanes, at);
    is_member := pending.is_member;
    chores := pending.chores;
    lines := pending.lines;
    next_at := pending.next_at;
    RETURN NEXT;
    IF is_member AND NOT chores AND NOT lines AND most > 0 THEN
        RETURN QUERY
            SELECT NULL::bigint[], NULL::boolean, NULL::boolean, NULL::boolean, NULL::float8,
                   NULL::float8, c.*
            FROM penstock.claim_1(
                member, kinds, most, alone AND pending.crashed, ordinary, at) AS c;
    END IF;
END $$;
