-- The run of cancelled jobs has ended: a list for each of seq, token, by seq.
UPDATE penstock.jobs AS j SET holder = NULL
FROM unnest($1::bigint[], $2::bigint[]) AS s (seq, token)
WHERE j.seq = s.seq AND j.token = s.token AND j.state = 'cancelled'
RETURNING j.seq
