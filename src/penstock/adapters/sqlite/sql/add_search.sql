-- Store a search of a task that is locked. See 0004_research.sql.
INSERT INTO research_searches
    (tenant, task, id, number, hash, query, wanted, priority, providers, state, run, queued_at)
VALUES
    (:tenant, :task, :id, :number, :hash, :query, :wanted, :priority, :providers, :state, :run,
     :queued_at)
