-- Forget some of the requests that were answered or lost before a time. See 0005_server.sql.
DELETE FROM api_requests WHERE rowid IN (
    SELECT rowid FROM api_requests WHERE at < :before LIMIT :most
)
