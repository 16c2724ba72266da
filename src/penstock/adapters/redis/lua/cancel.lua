#!lua flags=allow-oom
-- needs: base lines jobs log select
-- Cancel some of the matching jobs that are not finished: their ids, and where to go on.

local ids = {}
local rows, cursor = select.rows(ask.limit, false)
for _, row in ipairs(rows) do
  if row.state == 'queued' then
    jobs.unqueue(row)
    redis.call('ZADD', ns .. 'finished', now, row.seq)
  else
    -- Its run has still to end; only then may it be forgotten.
    redis.call('SADD', ns .. 'stopping:' .. row.holder, row.seq)
    count('running', row.kind, -1)
    wake('cancelled')
  end
  jobs.save(row, {state = 'cancelled', finished_at = now})
  count('cancelled', row.kind, 1)
  log.append(row, 'cancelled', '{}')
  wake('finished')
  ids[#ids + 1] = row.id
end
return done({cursor and exact(cursor) or '', ids})
