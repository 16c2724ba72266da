-- Delete what is old among the first entries. One from the far future is a wrong clock's. The
-- newest stays: positions are counted from it.
DELETE FROM feed
WHERE position IN (SELECT position FROM feed ORDER BY position LIMIT :limit)
  AND at NOT BETWEEN :now - :kept AND :now + :kept
  AND position < (SELECT max(position) FROM feed)
