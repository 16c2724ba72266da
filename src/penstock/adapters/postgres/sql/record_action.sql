-- What a caller did, or how that ended. See 0006_server.sql.
INSERT INTO penstock.actions (id, at, tenant, key_id, key_name, action, subject, detail, outcome)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
ON CONFLICT (id) DO UPDATE
SET subject = excluded.subject, detail = excluded.detail, outcome = excluded.outcome
