-- seqs, tokens, fractions, messages of running jobs, by seq.
UPDATE penstock.jobs AS j SET progress = s.progress, message = s.message
FROM unnest($1::bigint[], $2::bigint[], $3::float8[], $4::text[])
     AS s (seq, token, progress, message)
WHERE j.seq = s.seq AND j.token = s.token AND j.state = 'running'
RETURNING j.seq
