-- Let a search read a page that its task has not yet. See 0004_research.sql.
INSERT INTO research_pages
    (tenant, task, number, hash, search, run, key, url, state, title, at)
VALUES (:tenant, :task, :number, :hash, :search, :run, :key, :url, 'waiting', '', :now)
