-- Tasks that take no jobs, and what is noted in the log of a task beside its jobs.

local tasks = {}

function tasks.stopped(tenant, task)
  return (task or '') ~= '' and redis.call('SISMEMBER', ns .. 'stopped', pair(tenant, task)) == 1
end

-- Whether an attached child is left to a job of its task that may finish with its children: it runs,
-- and was there before the task was stopped.
local function goes_on(child)
  local before = redis.call('HGET', ns .. 'whole', pair(child.tenant, child.task))
  local seq = before and redis.call('ZSCORE', ns .. 'ids', child.parent_id)
  local parent = seq and jobs.load(seq)
  return parent and parent.state == 'running' and parent.tenant == child.tenant
    and parent.task == child.task and tonumber(parent.at) <= tonumber(before)
end

-- Whether a job may not be queued (any more), because its task is stopped.
function tasks.refuses(row)
  return tasks.stopped(row.tenant, row.task) and not (row.attached == '1' and goes_on(row))
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
