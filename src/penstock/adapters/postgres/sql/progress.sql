-- seqs, ids, tokens, fractions, messages of running jobs, by seq; and who holds them.
UPDATE penstock.jobs AS j SET progress = s.progress, message = s.message
FROM unnest($1::bigint[], $2::text[], $3::bigint[], $4::float8[], $5::text[])
     AS s (seq, id, token, progress, message)
WHERE j.seq = s.seq AND j.id IS NOT DISTINCT FROM s.id AND j.token = s.token
  AND j.holder IS NOT DISTINCT FROM $6 AND j.state = 'running'
RETURNING j.seq
