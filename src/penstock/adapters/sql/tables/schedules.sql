-- schedules: those that are made and changed while everything runs; see penstock.ports.schedules.
--   every_seconds  or cron, in a time zone
--   next_at        the next tick that has not been looked at; null: paused
--   counted_at     when that was computed
--   last_at        the last tick that was enqueued; last_job: its job
--   revision       another after each change and each tick: only who has seen it moves the row on
CREATE TABLE penstock.schedules (
    tenant        text COLLATE "C" NOT NULL,
    name          text COLLATE "C" NOT NULL,
    kind          text COLLATE "C" NOT NULL,
    payload       text NOT NULL,
    cron          text,
    every_seconds float8,
    timezone      text NOT NULL,
    priority      integer NOT NULL,
    overlap       integer NOT NULL,
    catch_up      float8 NOT NULL,
    next_at       float8,
    counted_at    float8,
    last_at       float8,
    last_job      text COLLATE "C",
    created_at    float8 NOT NULL,
    changed_at    float8 NOT NULL,
    revision      text COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant, name)
) WITH (fillfactor = 70);
CREATE INDEX schedules_next ON penstock.schedules (next_at);
CREATE INDEX schedules_counted ON penstock.schedules (counted_at);
