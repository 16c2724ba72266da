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

-- jobs: one row per job, from enqueue until retention or discard.
--   seq     never used again, so a late settlement cannot touch a newer job
--   ready   0 not claimable (scheduled, running, finished), 1 claimable, 2 claimable but alone
--           among its like, because a process died while running it
--   lane    '' none, '?' not known yet (enqueued where no handler of the kind was registered)
--   band, turn, seq   the order: effective priority, the tenant's turn, age
--   since   when it became claimable in its band; what ageing goes by
--   token   counts claims; a settlement with an older token is refused
--   holder  the membership (processes.number) it is leased to; the lease ends with the membership
--   waits_lane  the lane, not its own, that a scheduled job waits for
--   payload, result, error   JSON as text: as it was written, also where jsonb would refuse it
--   attached  a child that is cancelled with its parent
--   rerun_of  the id of the job that it repeats
--   history a JSON record per ended run
--   lines   what handlers logged with ctx.log, the last 64 KiB: a JSON array in each line (see
--           penstock.model.job_log); null where they have logged nothing
--   trace   the span that enqueued it, as a W3C traceparent; null where nobody traces
--   times   seconds since 1970 on the server's clock
--
-- Every job is written three times (enqueue, claim, settle), which leaves two dead rows. Pages keep
-- room for them, so that a job's versions stay on one page and are pruned when it is next read;
-- vacuum comes early and without pauses, because claims read the head of an index whose dead
-- entries only vacuum or a later claim removes.
CREATE TABLE penstock.jobs (
    seq         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id          text COLLATE "C" NOT NULL UNIQUE,
    tenant      text COLLATE "C" NOT NULL,
    kind        text COLLATE "C" NOT NULL,
    payload     text NOT NULL,
    state       text COLLATE "C" NOT NULL DEFAULT 'queued'
                CHECK (state IN ('queued', 'running', 'completed', 'failed', 'cancelled')),
    priority    integer NOT NULL,
    band        integer NOT NULL,
    turn        float8 NOT NULL,
    ready       integer NOT NULL,
    since       float8 NOT NULL,
    lane        text COLLATE "C" NOT NULL,
    run_at      float8 NOT NULL,
    deadline    float8,
    timeout     float8,
    max_retries integer,
    key         text COLLATE "C",
    log         text COLLATE "C",
    parent_id   text COLLATE "C",
    rerun_of    text COLLATE "C",
    attempts    integer NOT NULL DEFAULT 0,
    crashes     integer NOT NULL DEFAULT 0,
    releases    integer NOT NULL DEFAULT 0,
    token       bigint NOT NULL DEFAULT 0,
    holder      bigint,
    waits_lane  text COLLATE "C",
    enqueued_at float8 NOT NULL,
    started_at  float8,
    finished_at float8,
    progress    float8 NOT NULL DEFAULT 0,
    message     text NOT NULL DEFAULT '',
    result      text,
    error       text,
    error_type  text COLLATE "C",
    history     text[] NOT NULL DEFAULT '{}',
    trace       text,
    attached    boolean NOT NULL DEFAULT false,
    lines       text
) WITH (
    fillfactor = 70,
    autovacuum_vacuum_scale_factor = 0.02,
    autovacuum_vacuum_insert_scale_factor = 0.1,
    autovacuum_analyze_scale_factor = 0.05,
    autovacuum_vacuum_cost_delay = 0
);

-- What a claim reads: the head of (lane, kind), never the backlog behind it.
CREATE INDEX jobs_claim ON penstock.jobs (ready, lane, kind, band, turn, seq) WHERE ready > 0;
CREATE INDEX jobs_scheduled ON penstock.jobs (run_at) WHERE state = 'queued' AND ready = 0;
CREATE INDEX jobs_held ON penstock.jobs (holder) WHERE holder IS NOT NULL;
CREATE INDEX jobs_deadline ON penstock.jobs (deadline)
    WHERE state = 'queued' AND deadline IS NOT NULL;
CREATE INDEX jobs_finished ON penstock.jobs (finished_at)
    WHERE state IN ('completed', 'cancelled');
CREATE INDEX jobs_dead ON penstock.jobs (kind, seq) WHERE state = 'failed';
CREATE INDEX jobs_log ON penstock.jobs (tenant, log) WHERE log IS NOT NULL;
CREATE INDEX jobs_parent ON penstock.jobs (parent_id) WHERE parent_id IS NOT NULL;
CREATE INDEX jobs_waits_lane ON penstock.jobs (waits_lane) WHERE waits_lane IS NOT NULL;
CREATE INDEX jobs_attached ON penstock.jobs (parent_id)
    WHERE attached AND state IN ('queued', 'running');
-- The jobs of a lane, newest first. Jobs without one are not in it, and cost nothing.
CREATE INDEX jobs_lane ON penstock.jobs (lane, seq) WHERE lane <> '' AND lane <> '?';
CREATE UNIQUE INDEX jobs_key ON penstock.jobs (tenant, kind, key) WHERE key IS NOT NULL;

-- Whose turn it is: the last turn given to a tenant, and the turn now served, per lane and band.
-- Both are updated in place all the time: much room on each page, and no index on what changes.
CREATE TABLE penstock.turns (
    lane   text COLLATE "C" NOT NULL,
    band   integer NOT NULL,
    tenant text COLLATE "C" NOT NULL,
    last   float8 NOT NULL,
    PRIMARY KEY (lane, band, tenant)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.1, autovacuum_vacuum_cost_delay = 0);

CREATE TABLE penstock.served (
    lane text COLLATE "C" NOT NULL,
    band integer NOT NULL,
    turn float8 NOT NULL,
    PRIMARY KEY (lane, band)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.1, autovacuum_vacuum_cost_delay = 0);

-- Worker processes. `life` names the file whose kernel lock proves that they live, to those on
-- the same machine. Numbers are never used again, so a late member cannot be taken for another.
CREATE TABLE penstock.processes (
    number       bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id           text NOT NULL UNIQUE,
    host         text NOT NULL,
    pid          integer NOT NULL,
    boot         text NOT NULL,
    life         text NOT NULL,
    kinds        text[] NOT NULL,
    max_workers  integer NOT NULL,
    status       jsonb NOT NULL DEFAULT '{}',
    joined_at    float8 NOT NULL,
    heartbeat_at float8 NOT NULL,
    lease_until  float8 NOT NULL
) WITH (fillfactor = 50);

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

-- stopped_logs: logs that take no jobs. Apart from `logs`, whose rows go with the last job: a log
-- stays stopped until somebody reopens it. Written, and read by who would store jobs, only under
-- the lock of the log's row. Who queues jobs again has locked them, as a stop does first, so
-- it comes before or sees what is here.
--   whole_before  running jobs of the log that were enqueued by then may finish with their
--                 children; null: none may
CREATE TABLE penstock.stopped_logs (
    tenant       text COLLATE "C" NOT NULL,
    log          text COLLATE "C" NOT NULL,
    at           float8 NOT NULL,
    whole_before float8,
    PRIMARY KEY (tenant, log)
);

-- cascades: jobs that were cancelled while attached children of theirs were not finished. Written in
-- the transaction that cancels them, deleted when the children are cancelled, too.
CREATE TABLE penstock.cascades (id text COLLATE "C" PRIMARY KEY);

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
