-- needs 1
--
-- The feed of a tenant: the entries of all its logs in one order, that of (feed, task, version), in
-- which nothing ever appears behind a reader.
--   logs.feed, changes.feed   at least the id of the transaction that wrote, and in a log never
--                   falling. So once all transactions up to it have ended, whatever is committed
--                   later has a greater one, and a log's versions ascend
-- Null: written before there was a feed. Nothing is rewritten, and nothing is made that would need
-- rights of its own.
ALTER TABLE penstock.logs ADD COLUMN feed xid8;
ALTER TABLE penstock.changes ADD COLUMN feed xid8;
-- For a transaction that has begun to run the function as it was.
ALTER TABLE penstock.changes ALTER COLUMN feed SET DEFAULT pg_current_xact_id();
CREATE INDEX changes_feed ON penstock.changes (tenant, feed, task, version)
    WHERE feed IS NOT NULL;

-- Append to a task's log; the lock of the log's row is kept until the transaction ends. Replaced in
-- place, so that what processes of the version before write is in the feed, too.
CREATE OR REPLACE FUNCTION penstock.log_changes_1(
    of_tenant text, of_task text, at float8, whats text[], job_ids text[], datas text[]
) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    last bigint;
    place xid8;
BEGIN
    LOOP
        SELECT l.version, l.feed INTO last, place FROM penstock.logs AS l
        WHERE l.tenant = of_tenant AND l.task = of_task FOR UPDATE;
        EXIT WHEN FOUND;
        INSERT INTO penstock.logs (tenant, task, version) VALUES (of_tenant, of_task, 0)
        ON CONFLICT DO NOTHING;
    END LOOP;
    -- Who wrote last has committed, or the row could not be had. An id that is not even given out
    -- yet came with a dump from another server, whose count is not this one's.
    IF place >= pg_snapshot_xmax(pg_current_snapshot()) THEN
        place := NULL;
    END IF;
    place := greatest(place, pg_current_xact_id());
    UPDATE penstock.logs AS l SET version = last + cardinality(job_ids), feed = place
    WHERE l.tenant = of_tenant AND l.task = of_task;
    INSERT INTO penstock.changes (tenant, task, version, at, what, job_id, data, feed)
    SELECT of_tenant, of_task, last + e.n, log_changes_1.at, e.what, e.job_id, e.data, place
    FROM unnest(whats, job_ids, datas) WITH ORDINALITY AS e (what, job_id, data, n);
END $$;

-- A tenant's feed after a position. Every row has `horizon` and `next`: what is below the one has
-- been committed, or never will be; the other is the next transaction's id. Without entries there
-- is one row with only these.
CREATE FUNCTION penstock.feed_1(
    of_tenant text, after_feed xid8, after_task text, after_version bigint, most integer
) RETURNS TABLE (
    horizon xid8, next xid8, feed xid8,
    task text, version bigint, at float8, what text, job_id text, data text
) LANGUAGE sql STABLE
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off SET jit = off
AS $$
    SELECT s.horizon, s.next, c.feed, c.task, c.version, c.at, c.what, c.job_id, c.data
    FROM (SELECT pg_snapshot_xmin(pg_current_snapshot()) AS horizon,
                 pg_snapshot_xmax(pg_current_snapshot()) AS next) AS s
    LEFT JOIN LATERAL (
        SELECT * FROM penstock.changes AS c
        WHERE c.tenant = of_tenant AND c.feed < s.next
          AND (c.feed, c.task, c.version) > (after_feed, after_task, after_version)
        ORDER BY c.feed, c.task, c.version LIMIT most) AS c ON true
    ORDER BY c.feed, c.task, c.version
$$;
