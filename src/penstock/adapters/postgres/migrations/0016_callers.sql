-- needs 1

-- Store a batch in a caller's transaction, whichever driver that is open with: one text in, a JSON
-- object with what store_1 takes, and one text out. `queue` is the id of the queue that the caller
-- means, `amounts` is null where no job reserves any, `topics` are rung with the commit.
-- Returns {"found": what store_1 returns}, or why not, with nothing stored and the transaction as
-- it was: {"refused": its code, "detail": ..., "hint": ...}.
CREATE FUNCTION penstock.store_for_caller_1(batch text) RETURNS text LANGUAGE plpgsql
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off
AS $$
DECLARE
    b       record;
    found   text[];
    code    text;
    about   text;
    advice  text;
BEGIN
    SELECT * INTO b FROM json_to_record(batch::json) AS r (
        queue text, topics text[], amounts text[],
        ids text[], payloads text[], keys text[], lines integer[], places integer[],
        lanes text[], firsts float8[], step float8, tenant text, kind text, priority integer,
        run_at float8, deadline float8, timeout float8, max_retries integer, log text,
        parent_id text, token bigint, member text, attached boolean, replace_finished boolean,
        trace text, rerun_of text, at float8);
    IF NOT EXISTS (SELECT 1 FROM penstock.queue AS q WHERE q.id = b.queue) THEN
        RETURN '{"refused": "queue"}';
    END IF;
    BEGIN
        found := penstock.store_1(
            b.ids, b.payloads, b.keys, b.lines, b.places, b.lanes, b.firsts, b.step, b.tenant,
            b.kind, b.priority, b.run_at, b.deadline, b.timeout, b.max_retries, b.log,
            b.parent_id, b.token, b.member, b.attached, b.replace_finished, b.trace, b.rerun_of,
            b.at);
    EXCEPTION WHEN SQLSTATE 'PK001' OR SQLSTATE 'PK002' OR SQLSTATE 'PK003' THEN
        GET STACKED DIAGNOSTICS code = RETURNED_SQLSTATE, about = PG_EXCEPTION_DETAIL,
                                advice = PG_EXCEPTION_HINT;
        RETURN json_build_object('refused', code, 'detail', about, 'hint', advice)::text;
    END;
    IF b.amounts IS NOT NULL THEN
        UPDATE penstock.jobs AS j SET amount = s.amount
        FROM unnest(b.ids, b.amounts) WITH ORDINALITY AS s (id, amount, n)
        WHERE j.id = s.id AND s.amount IS NOT NULL AND found[s.n] IS NULL;
    END IF;
    IF b.topics IS NOT NULL THEN
        PERFORM penstock.ring(b.topics);
    END IF;
    RETURN json_build_object('found', found)::text;
END $$;
