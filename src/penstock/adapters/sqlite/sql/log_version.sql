INSERT INTO logs (tenant, task, version) VALUES (:tenant, :task, :count)
ON CONFLICT (tenant, task) DO UPDATE SET version = version + :count
RETURNING version
