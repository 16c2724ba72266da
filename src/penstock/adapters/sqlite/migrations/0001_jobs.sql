-- jobs: one row per job, from enqueue until retention or discard.
--   seq     never used again, so a late settlement cannot touch a newer job
--   ready   0 not claimable (scheduled, running, finished), 1 claimable, 2 claimable but alone
--           among its like, because a process died while running it
--   lane    '' none, '?' not known yet (enqueued where no handler of the kind was registered)
--   band, turn, seq   the order: effective priority, the tenant's turn, age
--   since   when it became claimable in its band; what ageing goes by
--   token   counts claims; a settlement with an older token is refused
--   holder  the membership (processes.number) it is leased to; the lease ends with the membership
--   waits_lane  the lane, not its own, that it waits for: queued again when that recovers
--   attached  1 for a child that is cancelled with its parent
--   rerun_of  the id of the job that it repeats
--   history JSON array, a record per ended run
--   lines   what handlers logged with ctx.log, the last 64 KiB: a JSON array in each line (see
--           penstock.model.job_log); null where they have logged nothing
--   trace   the span that enqueued it, as a W3C traceparent; null where nobody traces
CREATE TABLE jobs (
    seq         INTEGER PRIMARY KEY AUTOINCREMENT,
    id          TEXT NOT NULL UNIQUE,
    tenant      TEXT NOT NULL,
    kind        TEXT NOT NULL,
    payload     TEXT NOT NULL,
    state       TEXT NOT NULL DEFAULT 'queued'
                CHECK (state IN ('queued', 'running', 'completed', 'failed', 'cancelled')),
    priority    INTEGER NOT NULL,
    band        INTEGER NOT NULL,
    turn        REAL NOT NULL,
    ready       INTEGER NOT NULL,
    since       REAL NOT NULL,
    lane        TEXT NOT NULL,
    run_at      REAL NOT NULL,
    deadline    REAL,
    timeout     REAL,
    max_retries INTEGER,
    key         TEXT,
    log         TEXT,
    parent_id   TEXT,
    rerun_of    TEXT,
    attempts    INTEGER NOT NULL DEFAULT 0,
    crashes     INTEGER NOT NULL DEFAULT 0,
    releases    INTEGER NOT NULL DEFAULT 0,
    token       INTEGER NOT NULL DEFAULT 0,
    holder      INTEGER,
    enqueued_at REAL NOT NULL,
    started_at  REAL,
    finished_at REAL,
    progress    REAL NOT NULL DEFAULT 0,
    message     TEXT NOT NULL DEFAULT '',
    result      TEXT,
    error       TEXT,
    history     TEXT NOT NULL DEFAULT '[]',
    waits_lane  TEXT,
    trace       TEXT,
    attached    INTEGER NOT NULL DEFAULT 0,
    lines       TEXT
);

-- What a claim reads: the head of (lane, kind), never the backlog behind it. SQLite uses a
-- partial index only for queries that repeat its condition word for word.
CREATE INDEX jobs_claim ON jobs (ready, lane, kind, band, turn, seq) WHERE ready > 0;
CREATE INDEX jobs_scheduled ON jobs (run_at) WHERE state = 'queued' AND ready = 0;
CREATE INDEX jobs_held ON jobs (holder) WHERE holder IS NOT NULL;
CREATE INDEX jobs_deadline ON jobs (deadline) WHERE state = 'queued' AND deadline IS NOT NULL;
CREATE INDEX jobs_finished ON jobs (finished_at) WHERE state IN ('completed', 'cancelled');
CREATE INDEX jobs_dead ON jobs (kind, seq) WHERE state = 'failed';
CREATE INDEX jobs_log ON jobs (tenant, log) WHERE log IS NOT NULL;
CREATE INDEX jobs_parent ON jobs (parent_id) WHERE parent_id IS NOT NULL;
CREATE INDEX jobs_attached ON jobs (parent_id)
    WHERE attached AND state IN ('queued', 'running');
CREATE INDEX jobs_waits_lane ON jobs (waits_lane) WHERE waits_lane IS NOT NULL;
-- The jobs of a lane, newest first. Jobs without one are not in it, and cost nothing.
CREATE INDEX jobs_lane ON jobs (lane, seq) WHERE lane <> '' AND lane <> '?';
CREATE UNIQUE INDEX jobs_key ON jobs (tenant, kind, key) WHERE key IS NOT NULL;

-- Whose turn it is: the last turn given to a tenant, and the turn now served, per lane and band.
CREATE TABLE turns (
    lane   TEXT NOT NULL,
    band   INTEGER NOT NULL,
    tenant TEXT NOT NULL,
    last   REAL NOT NULL,
    PRIMARY KEY (lane, band, tenant)
) WITHOUT ROWID;

CREATE TABLE served (
    lane TEXT NOT NULL,
    band INTEGER NOT NULL,
    turn REAL NOT NULL,
    PRIMARY KEY (lane, band)
) WITHOUT ROWID;

-- Worker processes. `life` names the file whose kernel lock proves that they live.
-- Numbers are never used again, so a late member cannot be taken for another.
CREATE TABLE processes (
    number       INTEGER PRIMARY KEY AUTOINCREMENT,
    id           TEXT NOT NULL UNIQUE,
    host         TEXT NOT NULL,
    pid          INTEGER NOT NULL,
    boot         TEXT NOT NULL,
    life         TEXT NOT NULL,
    kinds        TEXT NOT NULL,
    max_workers  INTEGER NOT NULL,
    status       TEXT NOT NULL DEFAULT '{}',
    joined_at    REAL NOT NULL,
    heartbeat_at REAL NOT NULL,
    lease_until  REAL NOT NULL
);

-- Logs: versions 1, 2, 3 ... taken in the transaction that changes the job.
CREATE TABLE logs (
    tenant  TEXT NOT NULL,
    log     TEXT NOT NULL,
    version INTEGER NOT NULL,
    PRIMARY KEY (tenant, log)
) WITHOUT ROWID;

CREATE TABLE changes (
    tenant  TEXT NOT NULL,
    log     TEXT NOT NULL,
    version INTEGER NOT NULL,
    at      REAL NOT NULL,
    what    TEXT NOT NULL,
    job_id  TEXT NOT NULL,
    data    TEXT NOT NULL,
    PRIMARY KEY (tenant, log, version)
) WITHOUT ROWID;

-- feed: what the logs of a tenant have got, in the order it was committed; kept for an hour.
--   position  never used again: the newest row is never deleted, so the next is always greater.
--             (AUTOINCREMENT does the same with another write for each row.)
--   at        with the version, tells an entry from that of a later log of the same name
CREATE TABLE feed (
    position INTEGER PRIMARY KEY,
    tenant   TEXT NOT NULL,
    log      TEXT NOT NULL,
    version  INTEGER NOT NULL,
    at       REAL NOT NULL
);

-- The position is the last column of every index.
CREATE INDEX feed_tenant ON feed (tenant);

CREATE TRIGGER changes_feed AFTER INSERT ON changes BEGIN
    INSERT INTO logs (tenant, log, version) VALUES (new.tenant, new.log, new.version)
    ON CONFLICT (tenant, log) DO UPDATE SET version = excluded.version;
    INSERT INTO feed (tenant, log, version, at) VALUES (new.tenant, new.log, new.version, new.at);
END;

-- stopped_logs: logs that take no jobs. Apart from `logs`, whose rows go with the last job: a log
-- stays stopped until somebody reopens it.
--   whole_before  running jobs of the log that were enqueued by then may finish with their
--                 children; null: none may
CREATE TABLE stopped_logs (
    tenant       TEXT NOT NULL,
    log          TEXT NOT NULL,
    at           REAL NOT NULL,
    whole_before REAL,
    PRIMARY KEY (tenant, log)
) WITHOUT ROWID;

-- cascades: jobs that were cancelled while attached children of theirs were not finished. Written in
-- the transaction that cancels them, deleted when the children are cancelled, too.
CREATE TABLE cascades (id TEXT PRIMARY KEY) WITHOUT ROWID;
