-- budgets: what payers may spend, and have spent in this period; see penstock.model.budget.BudgetState.
-- Who charges locks them before all else, by payer.
--   reached     1: as much as it allows is spent or reserved; until `ends` nothing may be begun
--   lanes       a JSON array of those in which something was spent of it
--   configured  as the settings had it when they set it last; null: they never did
CREATE TABLE penstock.budgets (
    number       bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    payer        text COLLATE "C" NOT NULL UNIQUE,
    tokens_limit bigint,
    cost_limit   bigint,
    per          text NOT NULL,
    timezone     text NOT NULL,
    begins       float8 NOT NULL,
    ends         float8 NOT NULL,
    tokens       bigint NOT NULL DEFAULT 0,
    cost         bigint NOT NULL DEFAULT 0,
    reached      integer NOT NULL DEFAULT 0,
    warned       integer NOT NULL DEFAULT 0,
    lanes        text NOT NULL DEFAULT '[]',
    configured   text
);

-- paused_lines: jobs that a claim has met while a budget of theirs was reached stand in a line of their
-- own, so that others behind them are found: in jobs.ready they have 2 * number of the budget + 1,
-- or + 2 where they are to run alone. They keep their place: while there is something left to spend,
-- both lines are one. Written by who has the lane's row locked.
CREATE TABLE penstock.paused_lines (
    lane  text COLLATE "C" NOT NULL,
    kind  text COLLATE "C" NOT NULL,
    ready integer NOT NULL,
    payer text COLLATE "C" NOT NULL,
    PRIMARY KEY (lane, kind, ready)
);
CREATE INDEX paused_lines_payer ON penstock.paused_lines (payer);
