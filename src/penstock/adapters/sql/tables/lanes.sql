-- lanes: one row per lane in use; see penstock.lanes.state for what the columns mean. Whoever
-- goes by what is in a row, or changes it, has locked it before reading: children before parents,
-- several by name.
--   limits, own_...  what an operator gives it instead of the configured limits, as JSON, and what
--                    follows from it; null: as configured
--   asked_until      until when jobs leave a slot to questions; see penstock.lanes.permit
CREATE TABLE penstock.lanes (
    name          text COLLATE "C" PRIMARY KEY,
    parent        text COLLATE "C",
    spacing       float8 NOT NULL,
    tolerance     float8 NOT NULL,
    max_parallel  integer NOT NULL,
    per_day       integer,
    timeout       float8,
    breaker_first float8 NOT NULL,
    breaker_cap   float8 NOT NULL,
    next_start    float8 NOT NULL DEFAULT 0,
    day           integer NOT NULL DEFAULT 0,
    used_today    integer NOT NULL DEFAULT 0,
    day_offset    float8 NOT NULL DEFAULT 0,
    slowdown      float8 NOT NULL DEFAULT 1,
    limited       integer NOT NULL DEFAULT 0,
    praised       integer NOT NULL DEFAULT 0,
    credentials   integer NOT NULL DEFAULT 1,
    refusers      text NOT NULL DEFAULT '[]',
    blocked_until float8 NOT NULL DEFAULT 0,
    blocked_why   text,
    step          integer NOT NULL DEFAULT 0,
    retry_at      float8 NOT NULL DEFAULT 0,
    trial         bigint,
    trial_holder  bigint,
    last_trial    bigint,
    tried         text NOT NULL DEFAULT '[]',
    doubted       text NOT NULL DEFAULT '[]',
    suspect       bigint,
    suspect_token bigint NOT NULL DEFAULT 0,
    suspect_at    float8 NOT NULL DEFAULT 0,
    health_url    text,
    address       text,
    probe_seconds float8 NOT NULL,
    probed_at     float8 NOT NULL DEFAULT 0,
    probe_ok      integer,
    touched_at    float8 NOT NULL,
    limits        text,
    own_spacing   float8,
    own_tolerance float8,
    own_parallel  integer,
    own_per_day   integer,
    asked_until   float8 NOT NULL DEFAULT 0
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.1, autovacuum_vacuum_cost_delay = 0);

-- slots: a request open, or about to be, in a lane (and one for its parent). They belong to a
-- membership and end with it, so a dead holder keeps none.
--   ref  the job's seq, or, for a permit taken inside a job, a negative number of the holder's
-- The slots of questions are stored twice: in their lane, and under its name with "?" behind, where
-- they are counted.
CREATE TABLE penstock.slots (
    lane   text COLLATE "C" NOT NULL,
    holder bigint NOT NULL,
    ref    bigint NOT NULL,
    since  float8 NOT NULL,
    PRIMARY KEY (lane, holder, ref)
) WITH (autovacuum_vacuum_scale_factor = 0.1, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX slots_held ON penstock.slots (holder, ref);

-- lines: (lane, kind) with jobs waiting, and when to look at them next.
--   wake_at    null while it waits for a slot that no question has reserved
--   waits_for  the lane (its own or the parent) whose slot it waits for
CREATE TABLE penstock.lines (
    lane      text COLLATE "C" NOT NULL,
    kind      text COLLATE "C" NOT NULL,
    wake_at   float8,
    waits_for text COLLATE "C",
    since     float8 NOT NULL,
    PRIMARY KEY (lane, kind)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.1, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX lines_wake ON penstock.lines (kind, wake_at) WHERE wake_at IS NOT NULL;
CREATE INDEX lines_waiting ON penstock.lines (waits_for, kind, since) WHERE waits_for IS NOT NULL;
