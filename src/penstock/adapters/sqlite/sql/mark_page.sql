-- What became of a page of a search, if that is in this run, whether or not it is finished: it is
-- among the documents or not. What was read stays read, whatever another attempt came to. The time is
-- that of the first to say so. See 0004_research.sql.
UPDATE research_pages
SET at = CASE WHEN state = :state THEN at ELSE :now END,
    state = :state, run = :run, collection = :collection, document = :document, title = :title,
    reason = :reason
WHERE (tenant, task, hash, search) = (:tenant, :task, :hash, :search)
  AND (state <> 'read' OR :state = 'read')
  AND EXISTS (
      SELECT 1 FROM research_searches
      WHERE (tenant, task, id, run) = (:tenant, :task, :search, :run)
  )
