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
