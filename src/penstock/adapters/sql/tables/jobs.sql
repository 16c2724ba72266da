-- jobs: one row per job, from enqueue until retention or discard.
--   seq     never used again, so a late settlement cannot touch a newer job
--   ready   0 not claimable (scheduled, running, finished), 1 claimable, 2 claimable but alone
--           among its like, because a process died while running it
--   lane    '' none, '?' not known yet (enqueued where no handler of the kind was registered)
--   band, turn, seq   the order: effective priority, the tenant's turn, age
--   since   when it became claimable in its band; what ageing goes by. While it is scheduled: when
--           that was planned, by the clock its run_at was computed from
--   token   counts claims; a settlement with an older token is refused
--   holder  the membership (processes.number) it is leased to; the lease ends with the membership
--   waits_lane  the lane, not its own, that a scheduled job waits for; of a suspended job "sleep",
--           or "signal", a newline and the name of the signal
--   payload, result, error   JSON as text: as it was written, also where jsonb would refuse it
--   attached  a child that is cancelled with its parent
--   rerun_of  the id of the job that it repeats
--   lines   what handlers logged with ctx.log, the last 64 KiB: a JSON array in each line (see
--           penstock.model.job_log); null where they have logged nothing
--   trace   the span that enqueued it, as a W3C traceparent; null where nobody traces
--   times   seconds since 1970 on the queue's clock
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
    trace       text,
    attached    boolean NOT NULL DEFAULT false,
    lines       text
);

-- What a claim reads: the head of (lane, kind), never the backlog behind it. SQLite uses a
-- partial index only for queries that repeat its condition word for word.
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
-- `kinds`, a list, and `status`, JSON, are each database's own.
CREATE TABLE penstock.processes (
    number       bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id           text NOT NULL UNIQUE,
    host         text NOT NULL,
    pid          integer NOT NULL,
    boot         text NOT NULL,
    life         text NOT NULL,
    max_workers  integer NOT NULL,
    joined_at    float8 NOT NULL,
    heartbeat_at float8 NOT NULL,
    lease_until  float8 NOT NULL
);

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
