-- needs 1
--
-- Processes of the version before enqueue no bursts; what they claim, cancel and settle is the same.
-- tables: bursts

-- Store a batch with `debounce` or `unique_for`, in a caller's transaction or one of its own: takes
-- and returns what store_for_caller_1 does, and takes `bursts`, a key for each item, none of them
-- twice; `debounce`, `max_wait`; `unique_for`. Whoever has written a key first is waited for.
CREATE FUNCTION penstock.store_bursts_1(batch text) RETURNS text LANGUAGE plpgsql
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off
AS $$
#variable_conflict use_column
DECLARE
    b        record;
    standing text[];
    fresh    bigint[];
    found    text[];
    code     text;
    about    text;
    advice   text;
BEGIN
    SELECT * INTO b FROM json_to_record(batch::json) AS r (
        queue text, topics text[], amounts text[], bursts text[],
        debounce float8, max_wait float8, unique_for float8,
        ids text[], payloads text[], keys text[], lines integer[], places integer[],
        lanes text[], firsts float8[], step float8, tenant text, kind text, priority integer,
        run_at float8, deadline float8, timeout float8, max_retries integer, log text,
        parent_id text, token bigint, member text, attached boolean, replace_finished boolean,
        trace text, rerun_of text, at float8);
    IF NOT EXISTS (SELECT 1 FROM penstock.queue AS q WHERE q.id = b.queue) THEN
        RETURN '{"refused": "queue"}';
    END IF;
    BEGIN
        IF b.debounce IS NOT NULL THEN
            IF b.token IS NOT NULL THEN
                PERFORM penstock.hold_parent_1(b.parent_id, b.token, b.member);
            END IF;
            -- Past its longest wait a job keeps its place in line; another line needs another job.
            UPDATE penstock.jobs AS j SET debounce_key = NULL
            FROM unnest(b.bursts, b.lines) AS i (burst, line)
            WHERE j.tenant = b.tenant AND j.kind = b.kind AND j.debounce_key = i.burst
              AND j.state = 'queued' AND j.token = 0 AND j.ready = 1
              AND j.enqueued_at + b.max_wait <= b.at
              AND (j.lane = '?' OR j.lane <> b.lanes[coalesce(i.line, 1)]
                   OR j.priority <> b.priority);
            INSERT INTO penstock.jobs AS j (
                id, payload, lane, amount, debounce_key, turn, tenant, kind, priority, band, ready,
                since, run_at, deadline, timeout, max_retries, enqueued_at, trace)
            SELECT i.id, i.payload, b.lanes[coalesce(i.line, 1)], i.amount, i.burst, 0,
                   b.tenant, b.kind, b.priority, b.priority, 0, b.at, b.at + b.debounce,
                   b.deadline, b.timeout, b.max_retries, b.at, b.trace
            FROM unnest(b.ids, b.payloads, b.lines, b.amounts, b.bursts)
                 AS i (id, payload, line, amount, burst)
            WHERE NOT EXISTS (SELECT 1 FROM penstock.jobs AS o WHERE o.id = i.id)
            ORDER BY i.burst
            ON CONFLICT (tenant, kind, debounce_key)
                WHERE debounce_key IS NOT NULL AND state = 'queued' AND token = 0
            DO UPDATE SET
                payload = excluded.payload, lane = excluded.lane, amount = excluded.amount,
                priority = excluded.priority, deadline = excluded.deadline,
                timeout = excluded.timeout, max_retries = excluded.max_retries,
                trace = excluded.trace,
                (ready, band, since, run_at) = (
                    SELECT CASE WHEN s.stays THEN 1 ELSE 0 END,
                           CASE WHEN s.stays THEN j.band ELSE excluded.priority END,
                           CASE WHEN s.stays THEN j.since ELSE excluded.since END,
                           CASE WHEN s.stays THEN j.run_at
                                ELSE least(excluded.run_at, j.enqueued_at + b.max_wait) END
                    FROM (SELECT j.ready = 1 AND j.enqueued_at + b.max_wait <= b.at
                                 AND j.lane = excluded.lane
                                 AND j.priority = excluded.priority AS stays) AS s);
            found := ARRAY(
                SELECT coalesce(o.id, j.id)
                FROM unnest(b.ids, b.bursts) WITH ORDINALITY AS i (id, burst, n)
                LEFT JOIN penstock.jobs AS o ON o.id = i.id
                LEFT JOIN penstock.jobs AS j
                     ON j.tenant = b.tenant AND j.kind = b.kind AND j.debounce_key = i.burst
                    AND j.state = 'queued' AND j.token = 0
                ORDER BY i.n);
        ELSE
            -- Their rows are locked first, and looked at once everybody else has committed.
            INSERT INTO penstock.unique_jobs AS u (tenant, kind, burst, job_id, until)
            SELECT b.tenant, b.kind, i.burst, '', '-infinity' FROM unnest(b.bursts) AS i (burst)
            ORDER BY i.burst
            ON CONFLICT (tenant, kind, burst) DO UPDATE SET until = u.until WHERE false;
            UPDATE penstock.unique_jobs AS u SET job_id = i.id, until = b.at + b.unique_for
            FROM unnest(b.ids, b.bursts) AS i (id, burst)
            WHERE u.tenant = b.tenant AND u.kind = b.kind AND u.burst = i.burst
              AND (u.until <= b.at
                   OR NOT EXISTS (SELECT 1 FROM penstock.jobs AS j WHERE j.id = u.job_id));
            SELECT array_agg(nullif(u.job_id, i.id) ORDER BY i.n),
                   array_agg(i.n ORDER BY i.n) FILTER (WHERE u.job_id = i.id)
            INTO standing, fresh
            FROM unnest(b.ids, b.bursts) WITH ORDINALITY AS i (id, burst, n)
            JOIN penstock.unique_jobs AS u
                 ON u.tenant = b.tenant AND u.kind = b.kind AND u.burst = i.burst;
            IF fresh IS NOT NULL THEN
                found := penstock.store_1(
                    ARRAY(SELECT b.ids[n] FROM unnest(fresh) AS n),
                    ARRAY(SELECT b.payloads[n] FROM unnest(fresh) AS n), NULL,
                    ARRAY(SELECT coalesce(b.lines[n], 1) FROM unnest(fresh) AS n),
                    ARRAY(SELECT coalesce(b.places[n], n::integer) FROM unnest(fresh) AS n),
                    b.lanes, b.firsts, b.step, b.tenant, b.kind, b.priority, b.run_at, b.deadline,
                    b.timeout, b.max_retries, b.log, b.parent_id, b.token, b.member, b.attached,
                    b.replace_finished, b.trace, b.rerun_of, b.at);
                UPDATE penstock.jobs AS j SET amount = b.amounts[f.n]
                FROM unnest(fresh, found) AS f (n, old)
                WHERE j.id = b.ids[f.n] AND f.old IS NULL AND b.amounts[f.n] IS NOT NULL;
            END IF;
            found := ARRAY(
                SELECT coalesce(standing[n], found[array_position(fresh, n)])
                FROM generate_series(1::bigint, cardinality(b.ids)) AS n ORDER BY n);
        END IF;
    EXCEPTION WHEN SQLSTATE 'PK001' OR SQLSTATE 'PK002' OR SQLSTATE 'PK003' THEN
        GET STACKED DIAGNOSTICS code = RETURNED_SQLSTATE, about = PG_EXCEPTION_DETAIL,
                                advice = PG_EXCEPTION_HINT;
        RETURN json_build_object('refused', code, 'detail', about, 'hint', advice)::text;
    END;
    IF b.topics IS NOT NULL THEN
        PERFORM penstock.ring(b.topics);
    END IF;
    RETURN json_build_object('found', found)::text;
END $$;
