-- lanes: one row per lane in use; see penstock.lanes.state for what the columns mean.
--   limits, own_...  what an operator gives it instead of the configured limits, as JSON, and what
--                    follows from it; null: as configured
--   asked_until      until when jobs leave a slot to questions; see penstock.lanes.permit
CREATE TABLE lanes (
    name          TEXT PRIMARY KEY,
    parent        TEXT,
    spacing       REAL NOT NULL,
    tolerance     REAL NOT NULL,
    max_parallel  INTEGER NOT NULL,
    per_day       INTEGER,
    timeout       REAL,
    breaker_first REAL NOT NULL,
    breaker_cap   REAL NOT NULL,
    next_start    REAL NOT NULL DEFAULT 0,
    day           INTEGER NOT NULL DEFAULT 0,
    used_today    INTEGER NOT NULL DEFAULT 0,
    slowdown      REAL NOT NULL DEFAULT 1,
    limited       INTEGER NOT NULL DEFAULT 0,
    praised       INTEGER NOT NULL DEFAULT 0,
    blocked_until REAL NOT NULL DEFAULT 0,
    blocked_why   TEXT,
    step          INTEGER NOT NULL DEFAULT 0,
    retry_at      REAL NOT NULL DEFAULT 0,
    trial         INTEGER,
    trial_holder  INTEGER,
    last_trial    INTEGER,
    tried         TEXT NOT NULL DEFAULT '[]',
    doubted       TEXT NOT NULL DEFAULT '[]',
    suspect       INTEGER,
    suspect_token INTEGER NOT NULL DEFAULT 0,
    health_url    TEXT,
    address       TEXT,
    probe_seconds REAL NOT NULL,
    probed_at     REAL NOT NULL DEFAULT 0,
    probe_ok      INTEGER,
    touched_at    REAL NOT NULL,
    credentials   INTEGER NOT NULL DEFAULT 1,
    refusers      TEXT NOT NULL DEFAULT '[]',
    suspect_at    REAL NOT NULL DEFAULT 0,
    day_offset    REAL NOT NULL DEFAULT 0,
    limits        TEXT,
    own_spacing   REAL,
    own_tolerance REAL,
    own_parallel  INTEGER,
    own_per_day   INTEGER,
    asked_until   REAL NOT NULL DEFAULT 0
) WITHOUT ROWID;
CREATE INDEX lanes_troubled ON lanes (probed_at) WHERE step > 0 OR suspect IS NOT NULL;

-- slots: a request open, or about to be, in a lane (and one for its parent). They belong to a
-- membership and end with it, so a dead holder keeps none.
--   ref  the job's seq, or, for a permit taken inside a job, a negative number of the holder's
-- The slots of questions are stored twice: in their lane, and under its name with "?" behind, where
-- they are counted.
CREATE TABLE slots (
    lane   TEXT NOT NULL,
    holder INTEGER NOT NULL,
    ref    INTEGER NOT NULL,
    since  REAL NOT NULL,
    PRIMARY KEY (lane, holder, ref)
) WITHOUT ROWID;
CREATE INDEX slots_held ON slots (holder, ref);

-- lines: (lane, kind) with jobs waiting, and when to look at them next.
--   wake_at    null while it waits for a slot that no question has reserved
--   waits_for  the lane (its own or the parent) whose slot it waits for
CREATE TABLE lines (
    lane      TEXT NOT NULL,
    kind      TEXT NOT NULL,
    wake_at   REAL,
    waits_for TEXT,
    since     REAL NOT NULL,
    PRIMARY KEY (lane, kind)
) WITHOUT ROWID;
CREATE INDEX lines_wake ON lines (kind, wake_at) WHERE wake_at IS NOT NULL;
CREATE INDEX lines_waiting ON lines (waits_for, kind, since) WHERE waits_for IS NOT NULL;

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
