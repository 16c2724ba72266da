-- What became of a page of a search, if that is in this run ($4), whether or not it is finished:
-- it is among the documents or not. What was read stays read, whatever another attempt came to. The time
-- is that of the first to say so. See 0005_research.sql.
WITH mine AS (
    SELECT FROM penstock.research_searches
    WHERE (tenant, task, id, run) = ($1, $2, $3, $4)
    FOR SHARE
)
UPDATE penstock.research_pages
SET at = CASE WHEN state = $6 THEN at ELSE $7 END,
    state = $6, run = $4, collection = $8, document = $9, title = $10, reason = $11
FROM mine
WHERE (tenant, task, search, hash) = ($1, $2, $3, $5) AND (state <> 'read' OR $6 = 'read')
