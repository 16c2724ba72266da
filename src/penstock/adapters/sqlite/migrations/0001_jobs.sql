-- tables: jobs
--   history  JSON array, a record per ended run
ALTER TABLE jobs ADD COLUMN history TEXT NOT NULL DEFAULT '[]';
ALTER TABLE processes ADD COLUMN kinds TEXT NOT NULL DEFAULT '[]';
ALTER TABLE processes ADD COLUMN status TEXT NOT NULL DEFAULT '{}';

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
