-- vectors, unused_vectors: the next ones behind a key, whether anything needs each, and since when
-- that is known not to be so.
SELECT v.tenant, v.model, v.hash,
       (s.model IS NULL OR m.name IN (s.model, coalesce(s.next, s.model)))
       AND c.hash IS NOT NULL AS used, u.since
FROM (SELECT tenant, model, hash FROM penstock.vectors
      WHERE (tenant, model, hash) > ($1::integer, $2::integer, $3::text)
      ORDER BY tenant, model, hash LIMIT $4) AS v
JOIN penstock.models AS m ON m.number = v.model
CROSS JOIN penstock.serving AS s
LEFT JOIN LATERAL (SELECT hash FROM penstock.chunks
                   WHERE tenant = v.tenant AND hash = v.hash LIMIT 1) AS c ON true
LEFT JOIN LATERAL (SELECT since FROM penstock.unused_vectors
                   WHERE (tenant, model, hash) = (v.tenant, v.model, v.hash) OFFSET 0) AS u ON true
ORDER BY v.tenant, v.model, v.hash
