-- tenants: as in count_terms, for the tenant $4.
UPDATE penstock.tenants AS t SET chunks = t.chunks + c.chunks, terms = t.terms + c.terms
FROM (SELECT coalesce(sum(sign), 0) AS chunks, coalesce(sum(sign * length), 0) AS terms
      FROM unnest($1::bigint[], $2::bigint[], $3::bigint[]) AS m (document, old, new)
      CROSS JOIN LATERAL (
          SELECT CASE generation WHEN m.new THEN 1 ELSE -1 END AS sign, length
          FROM penstock.chunks WHERE document = m.document AND generation IN (m.old, m.new)
      ) AS signed) AS c
WHERE t.number = $4
