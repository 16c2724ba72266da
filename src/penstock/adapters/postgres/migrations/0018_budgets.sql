-- needs 1
--
-- Processes of the version before know of no budget: they start jobs whatever was spent, and of a
-- line in which everybody is paused they forget when it is to be looked at, until a budget of theirs
-- is raised.
-- tables: budgets

-- As `leave_lines_1`; but lines in which jobs are paused stay.
CREATE FUNCTION penstock.leave_lines_2(of_lanes text[], of_kinds text[])
RETURNS void LANGUAGE plpgsql
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off
SET plan_cache_mode = force_generic_plan
AS $$
DECLARE
    empty record;
BEGIN
    FOR empty IN
        SELECT l.lane, l.kind FROM penstock.lines AS l
        WHERE l.lane = ANY (of_lanes) AND l.kind = ANY (of_kinds)
          AND NOT EXISTS (SELECT 1 FROM penstock.jobs AS j WHERE j.ready > 0 AND j.ready IN (1, 2)
                          AND j.lane = l.lane AND j.kind = l.kind)
          AND NOT EXISTS (SELECT 1 FROM penstock.paused_lines AS p
                          WHERE p.lane = l.lane AND p.kind = l.kind)
        ORDER BY l.lane, l.kind
    LOOP
        PERFORM 1 FROM penstock.lines AS l
        WHERE l.lane = empty.lane AND l.kind = empty.kind FOR UPDATE SKIP LOCKED;
        IF FOUND THEN
            -- Looked at once more, now that nobody can join unseen.
            DELETE FROM penstock.lines AS l
            WHERE l.lane = empty.lane AND l.kind = empty.kind
              AND NOT EXISTS (SELECT 1 FROM penstock.jobs AS j
                              WHERE j.ready > 0 AND j.ready IN (1, 2)
                                AND j.lane = l.lane AND j.kind = l.kind);
            CONTINUE WHEN FOUND;
        END IF;
        UPDATE penstock.lines AS l SET wake_at = penstock.clock() + 0.1, waits_for = NULL
        WHERE l.lane = empty.lane AND l.kind = empty.kind;
    END LOOP;
END $$;
