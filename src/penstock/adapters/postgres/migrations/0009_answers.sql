-- needs 1
--
-- answers: questions, and what was found and said. Found by tenant and id.
--   saves   how often it was stored; who saves it has to know
--   body    JSON, as text, of all that is not a column: question, plan, text, citations, notes ...
--   rounds  JSON list, as text, of what was looked for and found, some hundred KB at times
-- Times are those of the callers, on the queue's clock. With the queue's own migrations, because it
-- needs nothing that a queue does not.
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
