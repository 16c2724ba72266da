INSERT INTO logs (tenant, log, version) VALUES (:tenant, :log, :count)
ON CONFLICT (tenant, log) DO UPDATE SET version = version + :count
RETURNING version
