-- Forget some of the requests that were answered or lost before a time. One that is just being
-- taken over is not waited for. See 0006_server.sql.
DELETE FROM penstock.api_requests WHERE ctid = ANY (ARRAY(
    SELECT ctid FROM penstock.api_requests WHERE at < $1 LIMIT $2 FOR UPDATE SKIP LOCKED
))
