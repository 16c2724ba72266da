-- jobs.attached: 1 for a child that is cancelled with its parent.
ALTER TABLE jobs ADD COLUMN attached INTEGER NOT NULL DEFAULT 0;

CREATE INDEX jobs_attached ON jobs (parent_id)
    WHERE attached = 1 AND state IN ('queued', 'running');

-- cascades: jobs that were cancelled while attached children of theirs were not finished. Written in
-- the transaction that cancels them, deleted when the children are cancelled, too.
CREATE TABLE cascades (id TEXT PRIMARY KEY) WITHOUT ROWID;

-- stopped_tasks.whole_before: running jobs of the task that were enqueued by then may finish with
-- their children; null: none may.
ALTER TABLE stopped_tasks ADD COLUMN whole_before REAL;
