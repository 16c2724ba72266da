-- How many jobs are queued (of a tenant, or of all: NULL). Each half by its index.
SELECT (SELECT count(*) FROM jobs WHERE ready > 0 AND (:tenant IS NULL OR tenant = :tenant))
     + (SELECT count(*) FROM jobs
        WHERE state = 'queued' AND ready = 0 AND (:tenant IS NULL OR tenant = :tenant))
