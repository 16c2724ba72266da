-- vectors, unused_vectors: the next ones behind a key, whether anything needs each, and since when
-- that is known not to be so.
SELECT v.tenant, v.model, v.hash,
       (s.model IS NULL OR v.model IS s.model OR v.model IS s.next)
       AND EXISTS (SELECT 1 FROM chunks JOIN documents ON documents.number = chunks.document
                   WHERE chunks.hash = v.hash AND documents.tenant = v.tenant) AS used,
       u.since
FROM vectors AS v CROSS JOIN serving AS s LEFT JOIN unused_vectors AS u USING (tenant, model, hash)
WHERE (v.tenant, v.model, v.hash) > (?, ?, ?)
ORDER BY v.tenant, v.model, v.hash LIMIT ?
