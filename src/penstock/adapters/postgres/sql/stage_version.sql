-- texts, documents, chunks: the version $2 of the document $1 is staged anew; its chunks follow.
-- What an interrupted run may have left of it goes.
WITH gone AS (
    DELETE FROM penstock.chunks WHERE document = $1 AND generation = $2
), told AS (
    UPDATE penstock.documents SET title = $4, mime = $5, chunks = $6, masked = $7, reading = $8
    WHERE number = $1
)
INSERT INTO penstock.texts (document, generation, text) VALUES ($1, $2, $3)
ON CONFLICT (document, generation) DO UPDATE SET text = excluded.text
