-- feed: what the logs of a tenant have got, in the order it was committed; kept for an hour.
--   position  never used again: the newest row is never deleted, so the next is always greater.
--             (AUTOINCREMENT does the same with another write for each row.)
--   at        with the version, tells an entry from that of a later log of the same name
-- Filled by a trigger, so that processes of the version before, which are still running, fill it too.
CREATE TABLE feed (
    position INTEGER PRIMARY KEY,
    tenant   TEXT NOT NULL,
    task     TEXT NOT NULL,
    version  INTEGER NOT NULL,
    at       REAL NOT NULL
);

-- The position is the last column of every index.
CREATE INDEX feed_tenant ON feed (tenant);

CREATE TRIGGER changes_feed AFTER INSERT ON changes BEGIN
    INSERT INTO feed (tenant, task, version, at) VALUES (new.tenant, new.task, new.version, new.at);
END;
