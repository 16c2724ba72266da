-- steps: named parts of jobs, and what they came to; a rerun takes it from here. They are deleted
-- with their job, by a trigger, so that it is done whoever deletes it.
--   job         jobs.seq
--   key         a hash of name, arguments and occurrence: what tells a step from all others of its job
--   arguments   a hash of the arguments that its function was called with
--   occurrence  counts the calls of this name with these arguments in one run: 1, 2 ...
--   version     that of the handler which made the record; '' where it declares none
--   attempts    calls of its function, over all runs
--   finished_at, result   null until it is recorded; the result is JSON as text
-- Events that the job has emitted are among them: their name is empty, and their result what they tell.
-- Added by a later migration:
--   position    where its record stands among those of the job; null until it is recorded
CREATE TABLE penstock.steps (
    job         bigint NOT NULL,
    key         text COLLATE "C" NOT NULL,
    name        text NOT NULL,
    arguments   text COLLATE "C" NOT NULL,
    occurrence  integer NOT NULL,
    version     text NOT NULL,
    lane        text COLLATE "C",
    attempts    integer NOT NULL,
    started_at  float8 NOT NULL,
    finished_at float8,
    result      text,
    PRIMARY KEY (job, key)
) WITH (fillfactor = 90);
