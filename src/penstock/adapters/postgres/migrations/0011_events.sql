-- needs 1
--
-- Where each record stands among those of its job: above every one that the job ever had, since its
-- token grows with each claim. Processes of the version before leave it null.
ALTER TABLE penstock.steps ADD COLUMN position bigint;
CREATE INDEX steps_position ON penstock.steps (job, position) WHERE position IS NOT NULL;

-- Store steps whose lease still stands; the positions of those stored. The jobs stay locked until
-- the end, so nobody takes one over between the look at its lease and the record; they are locked by
-- a statement of its own, so that the next one sees what whoever had the lock has recorded. A `soft`
-- one may be forgotten by a crash of the server. Note: what is only counted leaves a record as it is.
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
        SELECT array_agg(h.n) INTO places FROM (
            SELECT s.n FROM unnest(seqs, ids, tokens) WITH ORDINALITY AS s (seq, id, token, n)
            JOIN penstock.jobs AS j
              ON j.seq = s.seq AND j.id IS NOT DISTINCT FROM s.id AND j.token = s.token
            WHERE j.holder IS NOT DISTINCT FROM member AND j.state = 'running'
            ORDER BY j.seq FOR NO KEY UPDATE OF j) AS h;
        INSERT INTO penstock.steps AS t (
            job, key, name, arguments, occurrence, version, lane, attempts, started_at,
            finished_at, result, details, position)
        SELECT s.seq, s.key, s.name, s.arguments, s.occurrence, s.version, s.lane, s.attempts,
               s.started_at, s.finished_at, s.result, s.details,
               CASE WHEN s.result IS NOT NULL THEN
                   greatest(s.token * 16777216, (
                       SELECT max(k.position) FROM penstock.steps AS k
                       WHERE k.job = s.seq AND k.position IS NOT NULL))
                   + row_number() OVER (PARTITION BY s.seq ORDER BY s.n)
               END
        FROM unnest(seqs, tokens, keys, names, arguments, occurrences, versions, lanes, attempts,
                    starts, ends, results, all_details) WITH ORDINALITY
             AS s (seq, token, key, name, arguments, occurrence, version, lane, attempts,
                   started_at, finished_at, result, details, n)
        WHERE s.n = ANY (places)
        ON CONFLICT (job, key) DO UPDATE
        SET version = excluded.version, lane = excluded.lane, attempts = excluded.attempts,
            started_at = excluded.started_at,
            finished_at = coalesce(excluded.finished_at, t.finished_at),
            result = coalesce(excluded.result, t.result),
            details = excluded.details,
            position = coalesce(t.position, excluded.position);
    END IF;
    RETURN coalesce(places, '{}');
END $$;
