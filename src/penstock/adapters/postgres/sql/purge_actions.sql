-- Forget some of what was done before a time. See 0006_server.sql.
DELETE FROM penstock.actions WHERE ctid = ANY (ARRAY(
    SELECT ctid FROM penstock.actions WHERE at < $1 LIMIT $2 FOR UPDATE SKIP LOCKED
))
