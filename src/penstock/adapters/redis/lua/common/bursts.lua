-- Bursts: enqueues of which the latest counts (debounce), or the first (unique).
--
--   debounced                hash tenant, kind, key -> seq of a job that was never claimed
--   unique:TENANT,KIND,BURST id of the job that was stored; gone when others count again

local bursts = {}

local function field(key) return jobs.key_field(ask.tenant, ask.kind, key) end

-- The job that is there for an item of this burst in this lane: its id, and its row where it is to be
-- replaced.
function bursts.standing(key, lane)
  if ask.unique_for then
    local id = redis.call('GET', ns .. 'unique:' .. field(key))
    return id and redis.call('ZSCORE', ns .. 'ids', id) and id or nil
  end
  local seq = redis.call('HGET', ns .. 'debounced', field(key))
  local row = seq and jobs.load(seq)
  if not row or row.state ~= 'queued' or row.token or row.debounce_key ~= key then return nil end
  row.waits = redis.call('ZSCORE', ns .. 'scheduled', seq)
  row.stays = not row.waits and tonumber(row.at) + ask.max_wait <= now
  -- Past its longest wait a job keeps its place in line; another line needs another job.
  if row.stays and (row.lane == '?' or row.lane ~= lane or tonumber(row.priority) ~= ask.priority) then
    return nil
  end
  return row.id, row
end

-- It has been stored, for an item of this burst.
function bursts.note(key, seq, id)
  if ask.unique_for then
    local milliseconds = math.max(1, math.ceil(ask.unique_for * 1000))
    redis.call('SET', ns .. 'unique:' .. field(key), id, 'PX', milliseconds)
    return
  end
  local before = redis.call('HGET', ns .. 'debounced', field(key))
  if before then redis.call('HDEL', jobs.key(before), 'debounce_key') end
  redis.call('HSET', ns .. 'debounced', field(key), seq)
end

-- Give the job a new payload, and what belongs to that.
function bursts.replace(row, lane, payload, amount)
  redis.call('HSET', ns .. 'specs', row.seq, '{"at":' .. exact(tonumber(row.at)) .. ','
    .. string.sub(ask.spec, 2))
  redis.call('HSET', ns .. 'payloads', row.seq, payload)
  redis.call('HDEL', jobs.key(row.seq), 'timeout', 'max_retries')
  redis.call('ZREM', ns .. 'deadlines', row.seq)
  if ask.deadline then redis.call('ZADD', ns .. 'deadlines', ask.deadline, row.seq) end
  jobs.save(row, {amount = amount or '', deadline = ask.deadline and exact(ask.deadline) or ''})
  if row.stays then return end
  jobs.step_aside(row)
  local run_at = math.min(now + ask.debounce, tonumber(row.at) + ask.max_wait)
  jobs.save(row, {lane = lane, run_at = exact(run_at), place = ''})
  jobs.schedule(row, now)
end
