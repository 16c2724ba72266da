-- needs 1

-- As record_steps_2, for one step: whether it was stored. Most steps come one after another, and
-- a set of one costs twice as much. The job is locked by a statement of its own: the next one sees
-- what whoever had the lock has recorded.
CREATE FUNCTION penstock.record_step_1(
    member bigint, by_id text, soft boolean, of_job bigint, of_id text, of_token bigint,
    of_key text, of_name text, of_arguments text, of_occurrence integer, of_version text,
    of_lane text, of_attempts integer, begun float8, ended float8, came_to text, told text
) RETURNS boolean LANGUAGE plpgsql
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan
AS $$
DECLARE
    place bigint;
BEGIN
    IF soft THEN
        PERFORM set_config('synchronous_commit', 'off', true);
    END IF;
    PERFORM 1 FROM penstock.jobs AS j
    WHERE j.seq = of_job AND j.id = of_id AND j.token = of_token AND j.holder = member
      AND j.state = 'running'
      AND EXISTS (SELECT 1 FROM penstock.processes AS p WHERE p.number = member AND p.id = by_id)
    FOR NO KEY UPDATE OF j;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    IF came_to IS NOT NULL THEN
        place := 1 + greatest(of_token * 16777216, (
            SELECT max(k.position) FROM penstock.steps AS k
            WHERE k.job = of_job AND k.position IS NOT NULL));
    END IF;
    INSERT INTO penstock.steps AS t (
        job, key, name, arguments, occurrence, version, lane, attempts, started_at,
        finished_at, result, details, position)
    VALUES (of_job, of_key, of_name, of_arguments, of_occurrence, of_version, of_lane,
            of_attempts, begun, ended, came_to, told, place)
    ON CONFLICT (job, key) DO UPDATE
    SET version = excluded.version, lane = excluded.lane, attempts = excluded.attempts,
        started_at = excluded.started_at,
        finished_at = coalesce(excluded.finished_at, t.finished_at),
        result = coalesce(excluded.result, t.result),
        details = excluded.details,
        position = coalesce(t.position, excluded.position);
    RETURN true;
END $$;
