-- needs 1
-- tables: lanes
CREATE INDEX lanes_children ON penstock.lanes (parent) WHERE parent IS NOT NULL;

-- However a job joins a lane's line, the line is there to be looked at: at once, or when the
-- lane may be used again. It is locked until the job can be seen, so that nobody deletes it as
-- empty meanwhile; key share, so that it can be used meanwhile.
CREATE FUNCTION penstock.join_line() RETURNS trigger LANGUAGE plpgsql
SET enable_seqscan = off
AS $$
BEGIN
    LOOP
        PERFORM 1 FROM penstock.lines AS l
        WHERE l.lane = NEW.lane AND l.kind = NEW.kind FOR KEY SHARE;
        IF FOUND THEN
            RETURN NULL;
        END IF;
        INSERT INTO penstock.lines (lane, kind, wake_at, since)
        SELECT NEW.lane, NEW.kind,
               greatest(0, own.blocked_until, own.retry_at, above.blocked_until, above.retry_at),
               NEW.since
        FROM (SELECT 1) AS one
        LEFT JOIN penstock.lanes AS own ON own.name = NEW.lane
        LEFT JOIN penstock.lanes AS above ON above.name = own.parent
        ON CONFLICT DO NOTHING;
        IF FOUND THEN
            RETURN NULL;
        END IF;
    END LOOP;
END $$;
CREATE TRIGGER jobs_join_line AFTER INSERT ON penstock.jobs FOR EACH ROW
WHEN (NEW.ready > 0 AND NEW.lane <> '' AND NEW.lane <> '?')
EXECUTE FUNCTION penstock.join_line();
CREATE TRIGGER jobs_rejoin_line AFTER UPDATE OF ready, lane ON penstock.jobs FOR EACH ROW
WHEN (NEW.ready > 0 AND NEW.lane <> '' AND NEW.lane <> '?')
EXECUTE FUNCTION penstock.join_line();

-- Forget the lines, of these lanes and kinds, in which nobody waits. One that somebody is just
-- joining stays, and is looked at again soon.
CREATE FUNCTION penstock.leave_lines_1(of_lanes text[], of_kinds text[])
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
