-- tables: signals

CREATE TRIGGER jobs_forget_signals AFTER DELETE ON jobs BEGIN
    DELETE FROM signals WHERE job = old.seq;
END;
