-- Give queued jobs their place in line. :batch is [[seq, lane, band, turn], ...]
UPDATE jobs
SET ready = 1 + (crashes > 0), since = :now, lane = s.value ->> 1, band = s.value ->> 2,
    turn = s.value ->> 3
FROM json_each(:batch) AS s
WHERE jobs.seq = s.value ->> 0 AND jobs.state = 'queued'
