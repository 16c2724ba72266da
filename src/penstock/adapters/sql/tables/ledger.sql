-- charges: what single requests have used, or reserved, for as long as they are kept.
--   id        names the request among all that are ever made
--   day       since 1970, in UTC: of the request's start
--   task      the log of its job; empty, as all that follows, where it is unknown or there is none
--   cost      in millionths; null: of unknown price
--   reserved  1: its use is not told, and this is what was reserved for it
CREATE TABLE penstock.charges (
    id            text COLLATE "C" PRIMARY KEY,
    day           integer NOT NULL,
    at            float8 NOT NULL,
    tenant        text COLLATE "C" NOT NULL,
    task          text COLLATE "C" NOT NULL,
    job           text COLLATE "C" NOT NULL,
    kind          text COLLATE "C" NOT NULL,
    lane          text COLLATE "C" NOT NULL,
    model         text COLLATE "C" NOT NULL,
    tokens        bigint NOT NULL,
    input_tokens  bigint NOT NULL,
    output_tokens bigint NOT NULL,
    cost          bigint,
    reserved      integer NOT NULL
) WITH (fillfactor = 90);
CREATE INDEX charges_at ON penstock.charges (at);

-- usage_days: their sums, for ever. unpriced and reserved count requests of unknown price, and those
-- whose use is not told.
CREATE TABLE penstock.usage_days (
    day           integer NOT NULL,
    tenant        text COLLATE "C" NOT NULL,
    kind          text COLLATE "C" NOT NULL,
    lane          text COLLATE "C" NOT NULL,
    model         text COLLATE "C" NOT NULL,
    requests      bigint NOT NULL,
    tokens        bigint NOT NULL,
    input_tokens  bigint NOT NULL,
    output_tokens bigint NOT NULL,
    cost          bigint NOT NULL,
    unpriced      bigint NOT NULL,
    reserved      bigint NOT NULL,
    PRIMARY KEY (day, tenant, kind, lane, model)
) WITH (fillfactor = 70);
