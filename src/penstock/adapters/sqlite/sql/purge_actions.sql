-- Forget some of what was done before a time. See 0005_server.sql.
DELETE FROM actions WHERE id IN (SELECT id FROM actions WHERE at < :before LIMIT :most)
