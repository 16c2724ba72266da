-- documents: an upload takes the next generation, unless the same is there or on its way; then no
-- number is returned, and the row is locked all the same. In the update the generation is taken
-- after the wait for the lock, so whoever comes last has the greatest.
INSERT INTO penstock.documents AS d
    (tenant, collection, id, generation, state, stage, progress, message, title, size, source,
     metadata, facts, digest, blob, accepted_at)
VALUES
    ($1, $2, $3, nextval('penstock.generations'), 'processing', 'waiting', 0, '', $4, $5, $6,
     $7, $8, $9, $10, $11)
ON CONFLICT (tenant, collection, id) DO UPDATE SET
    generation = nextval('penstock.generations'), state = excluded.state, stage = excluded.stage,
    progress = 0, message = '', title = excluded.title, size = excluded.size,
    source = excluded.source, metadata = excluded.metadata, facts = excluded.facts,
    digest = excluded.digest, blob = excluded.blob, error = NULL,
    accepted_at = excluded.accepted_at, started_at = NULL, finished_at = NULL
WHERE d.digest <> excluded.digest OR d.state = 'failed'
RETURNING number
