-- $1 is [[seq, token], ...], by seq: the run of a cancelled job has ended.
UPDATE penstock.jobs AS j SET holder = NULL
FROM jsonb_array_elements($1) AS s (v)
WHERE j.seq = (s.v ->> 0)::bigint AND j.token = (s.v ->> 1)::bigint AND j.state = 'cancelled'
RETURNING j.seq
