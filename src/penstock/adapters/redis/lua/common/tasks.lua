-- Tasks that take no jobs, and what is noted in the log of a task beside its jobs.

local tasks = {}

function tasks.stopped(tenant, task)
  return (task or '') ~= '' and redis.call('SISMEMBER', ns .. 'stopped', pair(tenant, task)) == 1
end

-- A job of a stopped task was just queued again: it is cancelled instead. `data` is JSON text.
function tasks.cancel_requeued(row, data)
  jobs.cancel(row)
  log.append(row, 'cancelled', data)
  wake('finished')
end

-- An entry that tells of no job. `what` is as inside a JSON string.
function tasks.note(tenant, task, what, data)
  log.append({id = '', tenant = tenant, task = task}, what, data)
  local name = pair(tenant, task)
  if redis.call('EXISTS', ns .. 'task:' .. name) == 0 then
    -- No job will take the log with it.
    redis.call('ZADD', ns .. 'spent', now, name)
  end
end
