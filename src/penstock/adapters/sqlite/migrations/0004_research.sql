-- Research tasks: questions, their searches, what providers said, and the pages that are read.
-- Everything is found by tenant and task. Times are those of the callers, on the queue's clock.

-- research_tasks
--   pages         how many were granted so far
--   ends_at       when its seconds are over; null: no such budget, not begun, or paused
--   seconds_left  of its budget, while it is not begun or paused
CREATE TABLE research_tasks (
    tenant         TEXT NOT NULL,
    id             TEXT NOT NULL,
    question       TEXT NOT NULL,
    created_at     REAL NOT NULL,
    budget_pages   INTEGER,
    budget_seconds REAL,
    pages          INTEGER NOT NULL,
    ends_at        REAL,
    seconds_left   REAL,
    PRIMARY KEY (tenant, id)
);
CREATE INDEX research_tasks_newest ON research_tasks (tenant, created_at, id);

-- research_searches: the queries of a task, each once.
--   number     1, 2, 3 ... within the task
--   hash       of its key, by which queries are compared: keys can be long
--   wanted     how many results
--   providers  JSON list
--   run        what a job of an earlier one brings is refused
CREATE TABLE research_searches (
    tenant      TEXT NOT NULL,
    task        TEXT NOT NULL,
    id          TEXT NOT NULL,
    number      INTEGER NOT NULL,
    hash        TEXT NOT NULL,
    query       TEXT NOT NULL,
    wanted      INTEGER NOT NULL,
    priority    INTEGER NOT NULL,
    providers   TEXT NOT NULL,
    state       TEXT NOT NULL,
    run         INTEGER NOT NULL,
    queued_at   REAL NOT NULL,
    started_at  REAL,
    finished_at REAL,
    reason      TEXT,
    PRIMARY KEY (tenant, task, id),
    UNIQUE (tenant, task, number),
    UNIQUE (tenant, task, hash)
);
CREATE INDEX research_searches_unfinished ON research_searches (tenant, task, id, queued_at)
    WHERE state IN ('queued', 'running');
CREATE INDEX research_searches_taken ON research_searches (tenant, finished_at, started_at)
    WHERE state = 'completed' AND started_at IS NOT NULL;

-- research_answers: one row for each provider of a search that has said something.
--   number    in the order in which they first came
--   done      whether that is all; else next says where to go on
--   findings  JSON list, some hundred KB at times
CREATE TABLE research_answers (
    number   INTEGER PRIMARY KEY,
    tenant   TEXT NOT NULL,
    task     TEXT NOT NULL,
    search   TEXT NOT NULL,
    provider TEXT NOT NULL,
    skipped  INTEGER NOT NULL,
    done     INTEGER NOT NULL,
    next     TEXT,
    error    TEXT,
    at       REAL NOT NULL,
    findings TEXT NOT NULL,
    UNIQUE (tenant, task, search, provider)
);
CREATE INDEX research_answers_task ON research_answers (tenant, task, number);
CREATE INDEX research_answers_search ON research_answers (tenant, task, search, number);

-- research_pages: addresses that are read for a task, each once.
--   number  1, 2, 3 ... within the task, in the order in which they were granted
--   hash    of its key: addresses can be long
--   search  that asked for it first
--   run     of that search, in which it was granted or its state became what it is
CREATE TABLE research_pages (
    tenant     TEXT NOT NULL,
    task       TEXT NOT NULL,
    number     INTEGER NOT NULL,
    hash       TEXT NOT NULL,
    search     TEXT NOT NULL,
    run        INTEGER NOT NULL,
    key        TEXT NOT NULL,
    url        TEXT NOT NULL,
    state      TEXT NOT NULL,
    collection TEXT,
    document   TEXT,
    title      TEXT NOT NULL,
    reason     TEXT,
    at         REAL NOT NULL,
    PRIMARY KEY (tenant, task, number),
    UNIQUE (tenant, task, hash)
);
CREATE INDEX research_pages_search ON research_pages (tenant, task, search, number);

-- answers: questions, and what was found and said. Found by tenant and id.
--   saves   how often it was stored; who saves it has to know
--   body    JSON of all that is not a column: question, plan, text, citations, notes ...
--   rounds  JSON list of what was looked for and found, some hundred KB at times
-- Times are those of the callers, on the queue's clock.
CREATE TABLE answers (
    tenant     TEXT NOT NULL,
    id         TEXT NOT NULL,
    state      TEXT NOT NULL,
    created_at REAL NOT NULL,
    saves      INTEGER NOT NULL,
    body       TEXT NOT NULL,
    rounds     TEXT NOT NULL,
    PRIMARY KEY (tenant, id)
);
CREATE INDEX answers_newest ON answers (tenant, created_at, id);
CREATE INDEX answers_running ON answers (tenant, id, created_at) WHERE state = 'running';
