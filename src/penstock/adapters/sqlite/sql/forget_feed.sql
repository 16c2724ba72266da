-- Delete what is old among the first entries. One from the far future is a wrong clock's.
DELETE FROM feed
WHERE position IN (SELECT position FROM feed ORDER BY position LIMIT :limit)
  AND at NOT BETWEEN :now - :kept AND :now + :kept
