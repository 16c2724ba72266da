INSERT INTO changes (tenant, task, version, at, what, job_id, data)
VALUES (:tenant, :task, :version, :at, :what, :job_id, :data)
