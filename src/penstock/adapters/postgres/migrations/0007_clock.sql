-- needs 1
-- tables: clock

-- What a claim by `member` must see to first, and when the next one is due. Each answer is one
-- look at the head of an index.
--   chores  there are jobs that are due, overdue or of unknown lane. (Lapsed members are ended by
--           whoever has watched them: see decision 69.)
--   lines   there are lines of lanes to be looked at
CREATE OR REPLACE FUNCTION penstock.pending_1(
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
        OR EXISTS (SELECT 1 FROM penstock.jobs AS j
                   WHERE j.ready > 0 AND j.ready = 1 AND j.lane = '?' AND j.kind = ANY (kinds));
    crashed := EXISTS (SELECT 1 FROM penstock.jobs AS j
                       WHERE j.ready > 0 AND j.ready = 2 AND j.lane = ''
                         AND j.kind = ANY (kinds));
END $$;
