-- A list for each of seq, id, token, fraction (or null), message, lines to log of running jobs, by
-- seq; who holds them; and the limit of the log.
UPDATE penstock.jobs AS j
SET progress = coalesce(s.progress, j.progress),
    message = CASE WHEN s.progress IS NULL THEN j.message ELSE s.message END,
    lines = CASE WHEN s.lines = '' THEN j.lines ELSE right(coalesce(j.lines, '') || s.lines, $8) END
FROM unnest($1::bigint[], $2::text[], $3::bigint[], $4::float8[], $5::text[], $6::text[])
     AS s (seq, id, token, progress, message, lines)
WHERE j.seq = s.seq AND j.id IS NOT DISTINCT FROM s.id AND j.token = s.token
  AND j.holder IS NOT DISTINCT FROM $7 AND j.state = 'running'
RETURNING j.seq
