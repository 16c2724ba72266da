-- Logs that take no jobs, and what is noted in a log beside its jobs.

local stops = {}

function stops.stopped(tenant, name)
  return (name or '') ~= '' and redis.call('SISMEMBER', ns .. 'stopped', pair(tenant, name)) == 1
end

-- Whether an attached child is left to a job of its log that may finish with its children: it runs,
-- and was there before the log was stopped.
local function goes_on(child)
  local before = redis.call('HGET', ns .. 'whole', pair(child.tenant, child.log))
  local seq = before and redis.call('ZSCORE', ns .. 'ids', child.parent_id)
  local parent = seq and jobs.load(seq)
  return parent and parent.state == 'running' and parent.tenant == child.tenant
    and parent.log == child.log and tonumber(parent.at) <= tonumber(before)
end

-- Whether a job may not be queued (any more), because its log is stopped.
function stops.refuses(row)
  return stops.stopped(row.tenant, row.log) and not (row.attached == '1' and goes_on(row))
end

-- A job of a stopped log was just queued again: it is cancelled instead. `data` is JSON text.
function stops.cancel_requeued(row, data)
  jobs.cancel(row)
  log.append(row, 'cancelled', data)
  wake('finished')
end

-- An entry that tells of no job. `what` is as inside a JSON string.
function stops.note(tenant, name, what, data)
  log.append({id = '', tenant = tenant, log = name}, what, data)
  if redis.call('EXISTS', ns .. 'log_jobs:' .. pair(tenant, name)) == 0 then
    -- No job will take the log with it.
    redis.call('ZADD', ns .. 'spent', now, pair(tenant, name))
  end
end
