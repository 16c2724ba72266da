-- Receipts are rows of steps. details is JSON, and null for what is no receipt: what was asked (model,
-- parameters), seconds, tokens and price as far as they were told; void: it is not replayed any more.
ALTER TABLE penstock.steps ADD COLUMN details text;

-- secrets: random values that all processes of the queue share, each made once.
CREATE TABLE penstock.secrets (
    name  text COLLATE "C" PRIMARY KEY,
    value bytea NOT NULL
);
