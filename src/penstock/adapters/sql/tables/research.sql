-- Research tasks: questions, their searches, what providers said, and the pages that are read.
-- Everything is found by tenant and task. Times are those of the callers, on the queue's clock.

-- research_tasks
--   pages         how many were granted so far
--   ends_at       when its seconds are over; null: no such budget, not begun, or paused
--   seconds_left  of its budget, while it is not begun or paused
CREATE TABLE penstock.research_tasks (
    tenant         text COLLATE "C" NOT NULL,
    id             text COLLATE "C" NOT NULL,
    question       text NOT NULL,
    created_at     float8 NOT NULL,
    budget_pages   bigint,
    budget_seconds float8,
    pages          bigint NOT NULL,
    ends_at        float8,
    seconds_left   float8,
    PRIMARY KEY (tenant, id)
);
CREATE INDEX research_tasks_newest ON penstock.research_tasks (tenant, created_at, id);

-- research_searches: the queries of a task, each once.
--   number     1, 2, 3 ... within the task
--   hash       of its key, by which queries are compared: keys can be long
--   wanted     how many results
--   providers  JSON list, as text
--   run        what a job of an earlier one brings is refused
CREATE TABLE penstock.research_searches (
    tenant      text COLLATE "C" NOT NULL,
    task        text COLLATE "C" NOT NULL,
    id          text COLLATE "C" NOT NULL,
    number      integer NOT NULL,
    hash        text COLLATE "C" NOT NULL,
    query       text NOT NULL,
    wanted      integer NOT NULL,
    priority    integer NOT NULL,
    providers   text NOT NULL,
    state       text NOT NULL,
    run         integer NOT NULL,
    queued_at   float8 NOT NULL,
    started_at  float8,
    finished_at float8,
    reason      text,
    PRIMARY KEY (tenant, task, id),
    UNIQUE (tenant, task, number),
    UNIQUE (tenant, task, hash)
);
CREATE INDEX research_searches_unfinished ON penstock.research_searches (tenant, task, id, queued_at)
    WHERE state IN ('queued', 'running');
CREATE INDEX research_searches_taken ON penstock.research_searches (tenant, finished_at, started_at)
    WHERE state = 'completed' AND started_at IS NOT NULL;

-- research_answers: one row for each provider of a search that has said something.
--   number    in the order in which they first came
--   done      whether that is all; else next says where to go on
--   findings  JSON list as text, some hundred KB at times
CREATE TABLE penstock.research_answers (
    number   bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant   text COLLATE "C" NOT NULL,
    task     text COLLATE "C" NOT NULL,
    search   text COLLATE "C" NOT NULL,
    provider text COLLATE "C" NOT NULL,
    skipped  integer NOT NULL,
    done     boolean NOT NULL,
    next     text,
    error    text,
    at       float8 NOT NULL,
    findings text NOT NULL,
    UNIQUE (tenant, task, search, provider)
);
CREATE INDEX research_answers_task ON penstock.research_answers (tenant, task, number);
CREATE INDEX research_answers_search ON penstock.research_answers (tenant, task, search, number);

-- research_pages: addresses that are read for a task, each once.
--   number  1, 2, 3 ... within the task, in the order in which they were granted
--   hash    of its key: addresses can be long
--   search  that asked for it first
--   run     of that search, in which it was granted or its state became what it is
CREATE TABLE penstock.research_pages (
    tenant     text COLLATE "C" NOT NULL,
    task       text COLLATE "C" NOT NULL,
    number     integer NOT NULL,
    hash       text COLLATE "C" NOT NULL,
    search     text COLLATE "C" NOT NULL,
    run        integer NOT NULL,
    key        text NOT NULL,
    url        text NOT NULL,
    state      text NOT NULL,
    collection text,
    document   text,
    title      text NOT NULL,
    reason     text,
    at         float8 NOT NULL,
    PRIMARY KEY (tenant, task, number),
    UNIQUE (tenant, task, hash)
);
CREATE INDEX research_pages_search ON penstock.research_pages (tenant, task, search, number);

-- answers: questions, and what was found and said. Found by tenant and id.
--   saves   how often it was stored; who saves it has to know
--   body    JSON, as text, of all that is not a column: question, plan, text, citations, notes ...
--   rounds  JSON list, as text, of what was looked for and found, some hundred KB at times
-- Times are those of the callers, on the queue's clock.
CREATE TABLE penstock.answers (
    tenant     text COLLATE "C" NOT NULL,
    id         text COLLATE "C" NOT NULL,
    state      text NOT NULL,
    created_at float8 NOT NULL,
    saves      integer NOT NULL,
    body       text NOT NULL,
    rounds     text NOT NULL,
    PRIMARY KEY (tenant, id)
);
CREATE INDEX answers_newest ON penstock.answers (tenant, created_at, id);
CREATE INDEX answers_running ON penstock.answers (tenant, id, created_at) WHERE state = 'running';
