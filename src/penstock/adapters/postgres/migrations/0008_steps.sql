-- needs 1
-- tables: steps

CREATE FUNCTION penstock.forget_steps_1() RETURNS trigger LANGUAGE plpgsql
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off
AS $$
BEGIN
    DELETE FROM penstock.steps AS s USING gone AS g WHERE s.job = g.seq;
    RETURN NULL;
END $$;

CREATE TRIGGER jobs_forget_steps AFTER DELETE ON penstock.jobs
REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION penstock.forget_steps_1();
