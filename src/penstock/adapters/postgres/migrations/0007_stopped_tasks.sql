-- needs 1
--
-- stopped_tasks: tasks that take no jobs. Apart from their logs, which go with their last job: a
-- task stays stopped until somebody resumes it. Written, and read by who would store jobs, only
-- under the lock of the log's row. Who queues jobs again has locked them, as a stop does first, so
-- it comes before or sees what is here.
CREATE TABLE penstock.stopped_tasks (
    tenant text COLLATE "C" NOT NULL,
    task   text COLLATE "C" NOT NULL,
    at     float8 NOT NULL,
    PRIMARY KEY (tenant, task)
);

-- Append to a task's log; the lock of the log's row is kept until the transaction ends. Without
-- entries it only takes that lock. Raises PK002 when jobs are new and the task is stopped (detail:
-- the task). Replaced in place, so that processes of the version before are refused, too.
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
    IF whats[1] = 'queued' AND job_ids[1] <> '' AND EXISTS (
        SELECT 1 FROM penstock.stopped_tasks AS s
        WHERE s.tenant = of_tenant AND s.task = of_task) THEN
        RAISE EXCEPTION 'task is stopped' USING ERRCODE = 'PK002', DETAIL = of_task;
    END IF;
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
