#!lua flags=allow-oom
-- needs: base lines jobs log stops select signals records
-- Queue some of the matching dead letters again, with fresh retries, but none of a stopped log;
-- `from_scratch`, without what was recorded of their steps:
-- their ids, and where to go on.

local ids = {}
local rows, cursor = select.rows(ask.limit, false)
local function redrive(row)
  local changes = {
    state = 'queued', run_at = now, attempts = 0, crashes = 0, releases = 0,
    token = (row.token or 0) + 1, started_at = '', finished_at = '', progress = 0, message = ''}
  if (row.deadline or '') ~= '' and tonumber(row.deadline) <= now then changes.deadline = '' end
  jobs.save(row, changes)
  redis.call('ZREM', ns .. 'failed', row.seq)
  count('failed', row.tenant, row.kind, -1)
  if ask.from_scratch then
    redis.call('DEL', ns .. 'steps:' .. row.seq, records.order(row.seq))
    signals.untake(row.seq)
  end
  jobs.queue(row)
  jobs.schedule(row, now)
  jobs.remember(row, '{"attempt":null,"outcome":"redriven","finished_at":' .. exact(now)
    .. ',"error":null}')
  log.append(row, 'redriven', '{}')
  wake('ready')
  wake('finished')
  ids[#ids + 1] = row.id
end

for _, row in ipairs(rows) do
  if not stops.stopped(row.tenant, row.log) then redrive(row) end
end
return done({cursor and exact(cursor) or '', ids})
