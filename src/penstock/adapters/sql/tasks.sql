-- Research tasks, their searches, what providers said, and the pages that are read. See
-- tables/research.sql.
--
-- Locks are taken in one order: the task, then its searches. A job that brings something locks only
-- its search, and shares it with the others of that search; who gives the search another run waits
-- for them.

-- name: task_columns
tenant, id, question, created_at, budget_pages, budget_seconds, pages, ends_at, seconds_left

-- name: search_columns
tenant, task, id, number, query, wanted, priority, providers, state, run, queued_at, started_at,
finished_at, reason

-- name: reply_columns
search, provider, skipped, done, next, error, at, findings

-- name: page_columns
task, search, key, url, state, collection, document, title, reason, at

-- name: of_task
(tenant, task) = (:tenant, :task)

-- name: of_search
(tenant, task, search) = (:tenant, :task, :search)

-- name: this_run
(tenant, task, id, run) = (:tenant, :task, :search, :run)

-- name: unfinished_run
{this_run} AND state IN ('queued', 'running')

-- name: create_task
INSERT INTO penstock.research_tasks ({task_columns})
VALUES (:tenant, :id, :question, :created_at, :budget_pages, :budget_seconds, :pages, :ends_at,
        :seconds_left)
ON CONFLICT DO NOTHING

-- name: read_task
SELECT {task_columns} FROM penstock.research_tasks WHERE (tenant, id) = (:tenant, :task)

-- name: lock_task
{read_task} FOR UPDATE

-- name: save_task
-- What changes of a task that is locked.
UPDATE penstock.research_tasks
SET pages = :pages, ends_at = :ends_at, seconds_left = :seconds_left
WHERE (tenant, id) = (:tenant, :task)

-- name: newest_tasks
SELECT {task_columns} FROM penstock.research_tasks WHERE tenant = :tenant
ORDER BY created_at DESC, id DESC LIMIT :limit

-- name: older_tasks
-- Not with a subquery for the time: PostgreSQL searches the index for values only.
SELECT {task_columns} FROM penstock.research_tasks
WHERE tenant = :tenant AND (created_at, id) < (:created_at, :before)
ORDER BY created_at DESC, id DESC LIMIT :limit

-- name: searches_of_tasks
SELECT {search_columns} FROM penstock.research_searches
WHERE tenant = :tenant AND task = ANY (:tasks)
ORDER BY task, number

-- name: known_searches
SELECT {search_columns}, hash FROM penstock.research_searches WHERE {of_task}

-- name: searches_of_task
SELECT {search_columns} FROM penstock.research_searches WHERE {of_task} ORDER BY number

-- name: replies_of_task
SELECT {reply_columns} FROM penstock.research_answers WHERE {of_task} ORDER BY number

-- name: pages_of_task
SELECT {page_columns} FROM penstock.research_pages WHERE {of_task} ORDER BY number

-- name: replies_of_search
SELECT {reply_columns} FROM penstock.research_answers WHERE {of_search} ORDER BY number

-- name: pages_of_search
SELECT {page_columns} FROM penstock.research_pages WHERE {of_search} ORDER BY number

-- name: has_searches
SELECT 1 FROM penstock.research_searches WHERE {of_task} LIMIT 1

-- name: add_search
-- Of a task that is locked.
INSERT INTO penstock.research_searches
    (tenant, task, id, number, hash, query, wanted, priority, providers, state, run, queued_at)
VALUES
    (:tenant, :task, :id, :number, :hash, :query, :wanted, :priority, :providers, :state, :run,
     :queued_at)

-- name: start_search
UPDATE penstock.research_searches
SET state = 'running', started_at = coalesce(started_at, :now)
WHERE {this_run} AND state = 'queued'

-- name: running_search
SELECT {search_columns} FROM penstock.research_searches WHERE {this_run} AND state = 'running'

-- name: share_search
-- Whether it is under way in this run; who would give it another waits.
SELECT 1 FROM penstock.research_searches WHERE {unfinished_run} FOR SHARE

-- name: finish_search
UPDATE penstock.research_searches SET state = :state, reason = :reason, finished_at = :now
WHERE {unfinished_run}

-- name: finished_search
SELECT 1 FROM penstock.research_searches WHERE {this_run} AND state = :state

-- name: restart_search
-- Another run of a search, if it is unfinished and this is its run.
UPDATE penstock.research_searches SET run = run + 1, state = 'queued' WHERE {unfinished_run}
RETURNING {search_columns}

-- name: refuse_searches
-- Another run of all unfinished searches of a task.
UPDATE penstock.research_searches SET run = run + 1, state = 'queued'
WHERE {of_task} AND state IN ('queued', 'running')

-- name: unfinished_searches
-- Of all tenants, from one ref on.
SELECT {search_columns} FROM penstock.research_searches
WHERE (tenant, task, id) > (:tenant, :task, :search)
  AND state IN ('queued', 'running') AND queued_at < :before
ORDER BY tenant, task, id LIMIT :limit

-- name: seconds_taken
-- How long the newest completed searches of a tenant took on average.
SELECT avg(finished_at - started_at) FROM (
    SELECT started_at, finished_at FROM penstock.research_searches
    WHERE tenant = :tenant AND state = 'completed' AND started_at IS NOT NULL
    ORDER BY finished_at DESC LIMIT :last
) AS newest

-- name: keep_reply
-- What a provider said to a search, in place of what it said before, if the search is under way in
-- this run. Whoever gives it another run waits for this, or this for them.
INSERT INTO penstock.research_answers
    (tenant, task, search, provider, skipped, done, next, error, at, findings)
WITH mine AS (
    SELECT tenant, task, id FROM penstock.research_searches WHERE {unfinished_run} FOR SHARE
)
SELECT tenant, task, id, :provider::text, :skipped::integer, :done::boolean, :next::text,
       :error::text, :at::float8, :findings::text
FROM mine WHERE true
ON CONFLICT (tenant, task, search, provider) DO UPDATE
SET skipped = excluded.skipped, done = excluded.done, next = excluded.next,
    error = excluded.error, at = excluded.at, findings = excluded.findings

-- name: known_pages
SELECT {page_columns}, run FROM penstock.research_pages WHERE {of_task} AND hash = ANY (:hashes)

-- name: grant_page
-- Let a search read a page that its task, which is locked, has not yet.
INSERT INTO penstock.research_pages
    (tenant, task, number, hash, search, run, key, url, state, title, at)
VALUES (:tenant, :task, :number, :hash, :search, :run, :key, :url, 'waiting', '', :now)

-- name: grant_pages_again
UPDATE penstock.research_pages SET state = 'waiting', reason = NULL, run = :run, at = :now
WHERE {of_task} AND hash = ANY (:hashes)

-- name: mark_page
-- What became of a page of a search, if that is in this run, whether or not it is finished: it is
-- among the documents or not. What was read stays read, whatever another attempt came to. The time
-- is that of the first to say so.
UPDATE penstock.research_pages
SET at = CASE WHEN state = :state THEN at ELSE :now END, state = :state, run = :run,
    collection = :collection, document = :document, title = :title, reason = :reason
FROM (SELECT 1 FROM penstock.research_searches WHERE {this_run} FOR SHARE) AS mine
WHERE {of_search} AND hash = :hash AND (state <> 'read' OR :state = 'read')
