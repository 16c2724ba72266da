-- Settlements of :batch ([[seq, id, token, ...], ...]) that do not stand: taken over, cancelled, or
-- gone. One that was already stored with the same token does stand.
SELECT s.value ->> 0
FROM json_each(:batch) AS s LEFT JOIN jobs ON jobs.seq = s.value ->> 0
WHERE jobs.id IS NOT s.value ->> 1 OR jobs.token IS NOT s.value ->> 2 OR jobs.holder IS NOT NULL OR jobs.state = 'cancelled'
