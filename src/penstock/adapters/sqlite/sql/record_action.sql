-- What a caller did, or how that ended. See 0005_server.sql.
INSERT INTO actions (id, at, tenant, key_id, key_name, action, subject, detail, outcome)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (id) DO UPDATE
SET subject = excluded.subject, detail = excluded.detail, outcome = excluded.outcome
