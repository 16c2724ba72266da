-- tables: steps

CREATE TRIGGER jobs_forget_steps AFTER DELETE ON jobs BEGIN
    DELETE FROM steps WHERE job = old.seq;
END;
