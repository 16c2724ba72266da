-- jobs, lines: whether any job of :kinds is queued, running, or still being stopped. Line by line:
-- those of other kinds may be long, and are not gone through.
WITH wanted (kind) AS (SELECT value FROM json_each(:kinds)),
     some (lane, kind) AS (
         SELECT lane, kind FROM wanted JOIN lines USING (kind)
         UNION ALL SELECT '', kind FROM wanted
         UNION ALL SELECT '?', kind FROM wanted)
SELECT EXISTS (SELECT 1 FROM some CROSS JOIN jobs
               ON ready > 0 AND ready IN (1, 2)
               AND jobs.lane = some.lane AND jobs.kind = some.kind)
    OR EXISTS (SELECT 1 FROM jobs WHERE state = 'queued' AND ready = 0 AND kind IN wanted)
    OR EXISTS (SELECT 1 FROM jobs WHERE holder IS NOT NULL AND kind IN wanted)
