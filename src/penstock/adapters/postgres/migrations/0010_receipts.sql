-- needs 1
-- tables: receipts

-- Store steps whose lease still stands; the positions of those stored. The jobs stay locked until
-- the end, so nobody takes one over between the look at its lease and the record. A `soft` one may
-- be forgotten by a crash of the server. Note: what is only counted leaves a record as it is.
CREATE FUNCTION penstock.record_steps_2(
    member bigint, by_id text, soft boolean, seqs bigint[], ids text[], tokens bigint[],
    keys text[], names text[], arguments text[], occurrences integer[], versions text[],
    lanes text[], attempts integer[], starts float8[], ends float8[], results text[],
    all_details text[]
) RETURNS bigint[] LANGUAGE plpgsql
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off
SET plan_cache_mode = force_generic_plan
AS $$
DECLARE
    places bigint[];
BEGIN
    IF soft THEN
        PERFORM set_config('synchronous_commit', 'off', true);
    END IF;
    IF EXISTS (SELECT 1 FROM penstock.processes AS p WHERE p.number = member AND p.id = by_id)
    THEN
        WITH held AS MATERIALIZED (
            SELECT s.* FROM unnest(seqs, ids, tokens, keys, names, arguments, occurrences, versions,
                                   lanes, attempts, starts, ends, results, all_details)
                 WITH ORDINALITY
                 AS s (seq, id, token, key, name, arguments, occurrence, version, lane, attempts,
                       started_at, finished_at, result, details, n)
            JOIN penstock.jobs AS j
              ON j.seq = s.seq AND j.id IS NOT DISTINCT FROM s.id AND j.token = s.token
            WHERE j.holder IS NOT DISTINCT FROM member AND j.state = 'running'
            ORDER BY j.seq FOR SHARE OF j
        ), stored AS (
            INSERT INTO penstock.steps AS t (
                job, key, name, arguments, occurrence, version, lane, attempts, started_at,
                finished_at, result, details)
            SELECT h.seq, h.key, h.name, h.arguments, h.occurrence, h.version, h.lane, h.attempts,
                   h.started_at, h.finished_at, h.result, h.details
            FROM held AS h
            ON CONFLICT (job, key) DO UPDATE
            SET version = excluded.version, lane = excluded.lane, attempts = excluded.attempts,
                started_at = excluded.started_at,
                finished_at = coalesce(excluded.finished_at, t.finished_at),
                result = coalesce(excluded.result, t.result),
                details = excluded.details
        )
        SELECT array_agg(h.n) INTO places FROM held AS h;
    END IF;
    RETURN coalesce(places, '{}');
END $$;
