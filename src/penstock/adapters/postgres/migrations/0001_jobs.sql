-- needs 1
--
-- How these files are read: "penstock." stands for the namespace (a schema) of the queue. They are
-- applied in order, in one transaction, under an advisory lock, and noted in `migrations`. A file
-- only ever adds, so that processes of the version before go on working beside those of the next;
-- functions and procedures carry a number in their name, and a changed one gets the next number.
-- "needs N" in the first line: code that knows fewer than N of these files cannot use the queue
-- any more.
CREATE TABLE penstock.migrations (
    version    integer PRIMARY KEY,
    name       text NOT NULL,
    needs      integer NOT NULL,
    applied_at timestamptz NOT NULL DEFAULT now()
);

-- One row. `id` names this queue whatever the address it is reached by: processes of one machine
-- keep their life files in a folder named after it.
CREATE TABLE penstock.queue (
    id text NOT NULL
);
INSERT INTO penstock.queue (id) VALUES (gen_random_uuid());

-- tables: jobs
--   error_type  of the error, to find dead letters by
--   history     a JSON record per ended run
ALTER TABLE penstock.jobs
    ADD COLUMN error_type text COLLATE "C", ADD COLUMN history text[] NOT NULL DEFAULT '{}';
-- Every job is written three times (enqueue, claim, settle), which leaves two dead rows. Pages keep
-- room for them, so that a job's versions stay on one page and are pruned when it is next read;
-- vacuum comes early and without pauses, because claims read the head of an index whose dead
-- entries only vacuum or a later claim removes.
ALTER TABLE penstock.jobs SET (
    fillfactor = 70,
    autovacuum_vacuum_scale_factor = 0.02,
    autovacuum_vacuum_insert_scale_factor = 0.1,
    autovacuum_analyze_scale_factor = 0.05,
    autovacuum_vacuum_cost_delay = 0
);

ALTER TABLE penstock.processes
    ADD COLUMN kinds text[] NOT NULL, ADD COLUMN status jsonb NOT NULL DEFAULT '{}',
    SET (fillfactor = 50);

-- Logs. A version is taken under the lock of the log's row, in the transaction that changes the
-- job, so versions are committed in order and no reader misses one.
--
-- The feed of a tenant: the entries of all its logs in one order, that of (feed, log, version), in
-- which nothing ever appears behind a reader.
--   logs.feed, changes.feed   at least the id of the transaction that wrote, and in a log never
--                   falling. So once all transactions up to it have ended, whatever is committed
--                   later has a greater one, and a log's versions ascend
CREATE TABLE penstock.logs (
    tenant  text COLLATE "C" NOT NULL,
    log     text COLLATE "C" NOT NULL,
    version bigint NOT NULL,
    feed    xid8,
    PRIMARY KEY (tenant, log)
) WITH (fillfactor = 50);

CREATE TABLE penstock.changes (
    tenant  text COLLATE "C" NOT NULL,
    log     text COLLATE "C" NOT NULL,
    version bigint NOT NULL,
    at      float8 NOT NULL,
    what    text NOT NULL,
    job_id  text NOT NULL,
    data    text NOT NULL,
    feed    xid8 NOT NULL,
    PRIMARY KEY (tenant, log, version)
);
CREATE INDEX changes_feed ON penstock.changes (tenant, feed, log, version);

-- The queue's clock.
CREATE FUNCTION penstock.clock() RETURNS float8 LANGUAGE sql VOLATILE
AS $$ SELECT extract(epoch FROM clock_timestamp())::float8 $$;

-- A job's history with one more record. It keeps the first and the newest.
CREATE FUNCTION penstock.with_record(history text[], record text, most integer)
RETURNS text[] LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN cardinality(history) < most THEN history
                ELSE history[1:1] || history[3:] END || record
$$;

-- Wake who listens. Sent when the transaction is committed.
CREATE FUNCTION penstock.ring(topics text[]) RETURNS void LANGUAGE sql
AS $$ SELECT pg_notify('penstock.' || topic, '') FROM unnest(topics) AS topic $$;

-- Append to a log; the lock of the log's row is kept until the transaction ends. Without
-- entries it only takes that lock. Raises PK002 when jobs are new and the log is stopped (detail:
-- the log), unless they are attached children of `of_parent`, which may finish.
CREATE FUNCTION penstock.log_changes_1(
    of_tenant text, of_log text, at float8, whats text[], job_ids text[], datas text[],
    of_parent text DEFAULT NULL
) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    last bigint;
    place xid8;
BEGIN
    LOOP
        SELECT l.version, l.feed INTO last, place FROM penstock.logs AS l
        WHERE l.tenant = of_tenant AND l.log = of_log FOR UPDATE;
        EXIT WHEN FOUND;
        INSERT INTO penstock.logs (tenant, log, version) VALUES (of_tenant, of_log, 0)
        ON CONFLICT DO NOTHING;
    END LOOP;
    IF whats[1] = 'queued' AND job_ids[1] <> '' AND EXISTS (
        SELECT 1 FROM penstock.stopped_logs AS s
        WHERE s.tenant = of_tenant AND s.log = of_log AND NOT EXISTS (
            SELECT 1 FROM penstock.jobs AS p
            WHERE p.id = of_parent AND p.state = 'running' AND p.tenant = of_tenant
              AND p.log = of_log AND p.enqueued_at <= s.whole_before)) THEN
        RAISE EXCEPTION 'log is stopped' USING ERRCODE = 'PK002', DETAIL = of_log;
    END IF;
    -- Who wrote last has committed, or the row could not be had. An id that is not even given out
    -- yet came with a dump from another server, whose count is not this one's.
    IF place >= pg_snapshot_xmax(pg_current_snapshot()) THEN
        place := NULL;
    END IF;
    place := greatest(place, pg_current_xact_id());
    UPDATE penstock.logs AS l SET version = last + cardinality(job_ids), feed = place
    WHERE l.tenant = of_tenant AND l.log = of_log;
    INSERT INTO penstock.changes (tenant, log, version, at, what, job_id, data, feed)
    SELECT of_tenant, of_log, last + e.n, log_changes_1.at, e.what, e.job_id, e.data, place
    FROM unnest(whats, job_ids, datas) WITH ORDINALITY AS e (what, job_id, data, n);
END $$;

-- A tenant's feed after a position. Every row has `horizon` and `next`: what is below the one has
-- been committed, or never will be; the other is the next transaction's id. Without entries there
-- is one row with only these.
CREATE FUNCTION penstock.feed_1(
    of_tenant text, after_feed xid8, after_log text, after_version bigint, most integer
) RETURNS TABLE (
    horizon xid8, next xid8, feed xid8,
    log text, version bigint, at float8, what text, job_id text, data text
) LANGUAGE sql STABLE
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off SET jit = off
AS $$
    SELECT s.horizon, s.next, c.feed, c.log, c.version, c.at, c.what, c.job_id, c.data
    FROM (SELECT pg_snapshot_xmin(pg_current_snapshot()) AS horizon,
                 pg_snapshot_xmax(pg_current_snapshot()) AS next) AS s
    LEFT JOIN LATERAL (
        SELECT * FROM penstock.changes AS c
        WHERE c.tenant = of_tenant AND c.feed < s.next
          AND (c.feed, c.log, c.version) > (after_feed, after_log, after_version)
        ORDER BY c.feed, c.log, c.version LIMIT most) AS c ON true
    ORDER BY c.feed, c.log, c.version
$$;
