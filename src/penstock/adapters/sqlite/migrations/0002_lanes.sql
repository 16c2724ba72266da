-- tables: lanes
CREATE INDEX lanes_troubled ON lanes (probed_at) WHERE step > 0 OR suspect IS NOT NULL;

-- However a job joins a lane's line, the line is there to be looked at: at once, or when the
-- lane may be used again.
CREATE TRIGGER jobs_join_line AFTER INSERT ON jobs
WHEN NEW.ready > 0 AND NEW.lane NOT IN ('', '?')
BEGIN
    INSERT OR IGNORE INTO lines (lane, kind, wake_at, since)
    SELECT NEW.lane, NEW.kind,
           max(coalesce(own.blocked_until, 0), coalesce(own.retry_at, 0),
               coalesce(parent.blocked_until, 0), coalesce(parent.retry_at, 0)),
           NEW.since
    FROM (SELECT 1)
    LEFT JOIN lanes AS own ON own.name = NEW.lane
    LEFT JOIN lanes AS parent ON parent.name = own.parent;
END;
CREATE TRIGGER jobs_rejoin_line AFTER UPDATE OF ready, lane ON jobs
WHEN NEW.ready > 0 AND NEW.lane NOT IN ('', '?')
BEGIN
    INSERT OR IGNORE INTO lines (lane, kind, wake_at, since)
    SELECT NEW.lane, NEW.kind,
           max(coalesce(own.blocked_until, 0), coalesce(own.retry_at, 0),
               coalesce(parent.blocked_until, 0), coalesce(parent.retry_at, 0)),
           NEW.since
    FROM (SELECT 1)
    LEFT JOIN lanes AS own ON own.name = NEW.lane
    LEFT JOIN lanes AS parent ON parent.name = own.parent;
END;
