INSERT INTO changes (tenant, log, version, at, what, job_id, data)
VALUES (:tenant, :log, :version, :at, :what, :job_id, :data)
