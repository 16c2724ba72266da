-- needs 1
--
-- What proves a lease. After a failover to a replica that lagged behind, the sequences give out
-- numbers again: of jobs (seq) and of memberships (number). A row is found by them, but it is the
-- holder's only with the job's id, the token, and the random id of the membership. Ids of jobs come
-- back as well, where they are made of a key, a parent or a tick; so none of the three is enough.
--
-- "IS NOT DISTINCT FROM" keeps the planner from the indexes of these columns: jobs are found by seq.

-- See completed_1. Nothing, where the member is not who it takes itself for.
CREATE FUNCTION penstock.completed_2(
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
CREATE FUNCTION penstock.refused_2(
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

-- See pending_1.
CREATE FUNCTION penstock.pending_2(
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

-- See exchange_1.
CREATE FUNCTION penstock.exchange_3(
    member bigint, by_id text, seqs bigint[], ids text[], tokens bigint[], starts float8[],
    ends float8[], results text[], kinds text[], most integer, alone boolean, ordinary integer, in_lanes boolean
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
        settled := penstock.completed_2(member, by_id, seqs, ids, tokens, starts, ends, results);
        IF cardinality(settled) > 0 THEN
            PERFORM penstock.ring('{finished}');
        END IF;
        IF cardinality(settled) < count THEN
            refused := penstock.refused_2(member, by_id, seqs, ids, tokens);
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
    SELECT * INTO pending FROM penstock.pending_2(member, by_id, kinds, in_lanes, at);
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
