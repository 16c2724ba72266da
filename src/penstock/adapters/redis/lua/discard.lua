#!lua flags=allow-oom
-- needs: base lines jobs log select
-- Delete some of the matching dead letters: their ids, and where to go on.

local ids = {}
local rows, cursor = select.rows(ask.limit, false)
for _, row in ipairs(rows) do
  jobs.forget(row)
  log.append(row, 'discarded', '{}')
  if (row.log or '') ~= '' then
    -- Whoever watches must still learn of it: the log goes when the retention has passed.
    local name = pair(row.tenant, row.log)
    if redis.call('EXISTS', ns .. 'log_jobs:' .. name) == 0 then
      redis.call('ZADD', ns .. 'spent', now, name)
    end
  end
  wake('finished')
  ids[#ids + 1] = row.id
end
return done({cursor and exact(cursor) or '', ids})
