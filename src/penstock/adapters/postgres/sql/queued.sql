-- How many jobs are queued (of a tenant, or of all: NULL). Each half by its index.
SELECT (SELECT count(*) FROM penstock.jobs WHERE ready > 0 AND ($1::text IS NULL OR tenant = $1))
     + (SELECT count(*) FROM penstock.jobs
        WHERE state = 'queued' AND ready = 0 AND ($1::text IS NULL OR tenant = $1))
