#!lua flags=allow-oom
-- needs: base lines jobs log select
-- Cancel some of the matching jobs that are not finished: their ids, and where to go on.

local ids = {}
local rows, cursor = select.rows(ask.limit, false)
for _, row in ipairs(rows) do
  jobs.cancel(row)
  log.append(row, 'cancelled', '{}')
  wake('finished')
  ids[#ids + 1] = row.id
end
return done({cursor and exact(cursor) or '', ids})
