-- The run of cancelled jobs has ended: a list for each of seq, id, token, by seq;
-- and who holds them.
UPDATE penstock.jobs AS j SET holder = NULL
FROM unnest($1::bigint[], $2::text[], $3::bigint[]) AS s (seq, id, token)
WHERE j.seq = s.seq AND j.id IS NOT DISTINCT FROM s.id AND j.token = s.token
  AND j.holder IS NOT DISTINCT FROM $4 AND j.state = 'cancelled'
RETURNING j.seq
