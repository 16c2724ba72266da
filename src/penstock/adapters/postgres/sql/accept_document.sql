-- documents: an upload takes the next generation, unless the same is there, on its way, or has
-- failed and is not to be tried again; then no number is returned, and the row is locked all the same. In the update the generation is taken
-- after the wait for the lock, so whoever comes last has the greatest. One that is still to be
-- fetched keeps title and size: what is there may turn out to be what is fetched.
INSERT INTO penstock.documents AS d
    (tenant, collection, id, generation, state, stage, progress, message, title, size, source,
     metadata, facts, digest, blob, accepted_at, remote, request, charset)
VALUES
    ($1, $2, $3, penstock.next_generation_1(), 'processing',
     CASE WHEN $12::boolean THEN 'fetch' ELSE 'waiting' END, 0, '', $4, $5, $6,
     $7, $8, $9, $10, $11, $12,
     CASE WHEN $12::boolean THEN $10 END, $13)
ON CONFLICT (tenant, collection, id) DO UPDATE SET
    generation = penstock.next_generation_1(), state = excluded.state, stage = excluded.stage,
    progress = 0, message = '',
    title = CASE WHEN excluded.remote THEN d.title ELSE excluded.title END,
    size = CASE WHEN excluded.remote THEN d.size ELSE excluded.size END,
    charset = CASE WHEN excluded.remote THEN d.charset ELSE excluded.charset END,
    remote = excluded.remote, request = excluded.request, source = excluded.source,
    metadata = excluded.metadata, facts = excluded.facts,
    digest = excluded.digest, blob = excluded.blob, error = NULL,
    accepted_at = excluded.accepted_at, started_at = NULL, finished_at = NULL
WHERE d.digest <> excluded.digest OR (d.state = 'failed' AND $14::boolean)
RETURNING number
