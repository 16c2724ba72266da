-- stopped_tasks: tasks that take no jobs. Apart from their logs, which go with their last job: a
-- task stays stopped until somebody resumes it.
CREATE TABLE stopped_tasks (
    tenant TEXT NOT NULL,
    task   TEXT NOT NULL,
    at     REAL NOT NULL,
    PRIMARY KEY (tenant, task)
) WITHOUT ROWID;
