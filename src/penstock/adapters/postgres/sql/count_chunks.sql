-- tenants: the version $3 of a document takes the place of $2; either may be null.
UPDATE penstock.tenants AS t SET chunks = t.chunks + c.chunks, terms = t.terms + c.terms
FROM (SELECT coalesce(sum(sign), 0) AS chunks, coalesce(sum(sign * length), 0) AS terms
      FROM (SELECT CASE generation WHEN $3 THEN 1 ELSE -1 END AS sign, length
            FROM penstock.chunks
            WHERE document = $1 AND generation IN ($2::bigint, $3::bigint)) AS signed) AS c
WHERE t.number = $4
