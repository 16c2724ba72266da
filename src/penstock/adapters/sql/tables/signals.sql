-- signals: what somebody has told a job; deleted with it, by a trigger. Written, and taken, only under
-- the lock of the job's row: so a job that gives its lease back to wait for one does not miss it.
--   number    counts the signals of the job: 1, 2 ...
--   key       the same key is the same signal; null where it was given none
--   taken_by  steps.key of the wait that has it; null: nobody yet
CREATE TABLE penstock.signals (
    job      bigint NOT NULL,
    number   integer NOT NULL,
    name     text COLLATE "C" NOT NULL,
    key      text COLLATE "C",
    payload  text NOT NULL,
    at       float8 NOT NULL,
    taken_by text COLLATE "C",
    PRIMARY KEY (job, number)
) WITH (fillfactor = 90);
