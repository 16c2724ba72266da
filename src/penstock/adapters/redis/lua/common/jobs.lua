-- Rows of jobs, and what refers to them.

local HISTORY_LIMIT = 100
local LOG_LIMIT = 65536 -- as in penstock.model.job_log

local jobs = {}

function jobs.key(seq) return ns .. 'job:' .. seq end

local known_specs = {}

-- What the jobs of a batch have in common. Decoded once for all of them.
function jobs.spec(text)
  local spec = known_specs[text]
  if not spec then
    spec = cjson.decode(text)
    -- As they are until something changes them, and so not stored before.
    spec.state, spec.lane, spec.run_at, spec.since = 'queued', '', spec.at, spec.at
    spec.__index = spec
    known_specs[text] = spec
  end
  return spec
end

-- The row as a table; where it has no value of its own, it is the spec's. Nil if there is none.
function jobs.load(seq, spec)
  local flat = redis.call('HGETALL', jobs.key(seq))
  if #flat == 0 then return nil end
  spec = spec or redis.call('HGET', ns .. 'specs', seq)
  local row = setmetatable({seq = seq, spec = spec}, jobs.spec(spec))
  for at = 1, #flat, 2 do row[flat[at]] = flat[at + 1] end
  return row
end

function jobs.save(row, changes)
  local fields = {}
  for name, value in pairs(changes) do
    row[name] = value
    fields[#fields + 1] = name
    fields[#fields + 1] = value
  end
  redis.call('HSET', jobs.key(row.seq), unpack(fields))
end

function jobs.place(band, turn, seq) return string.format('%02d%019.6f%016d', band, turn, seq) end

function jobs.band(place) return tonumber(string.sub(place, 1, 2)) end

function jobs.turn(place) return tonumber(string.sub(place, 3, 21)) end

function jobs.seq(place) return string.match(place, '^0*(%d+)$', 22) end

function jobs.crashed(row) return (tonumber(row.crashes) or 0) > 0 end

-- The line a claimable job stands in.
function jobs.line(row)
  local paused = (row.paused or '') ~= '' and 'paused:' .. row.paused .. '\n' or ''
  return ns .. paused .. (jobs.crashed(row) and 'alone:' or 'line:') .. pair(row.lane, row.kind)
end

-- It stands in no line of a budget any more.
function jobs.unpause(row)
  if (row.paused or '') ~= '' then jobs.save(row, {paused = ''}) end
end

-- It is queued now; whoever calls this says where: in line, or scheduled.
function jobs.queue(row)
  redis.call('ZADD', ns .. 'queued:' .. row.kind, row.seq, row.seq)
  if (row.deadline or '') ~= '' then
    redis.call('ZADD', ns .. 'deadlines', row.deadline, row.seq)
  end
  count('queued', row.tenant, row.kind, 1)
end

-- A queued job back to the place it had, or will have, in its line.
function jobs.stand(row)
  redis.call('ZADD', jobs.line(row), 0, row.place)
  if row.lane ~= '' and row.lane ~= '?' then lines.join(row.lane, row.kind, row.since) end
end

-- It is queued for its run_at, which was planned at this time.
function jobs.schedule(row, planned)
  jobs.save(row, {since = planned})
  redis.call('ZADD', ns .. 'scheduled', row.run_at, row.seq)
  redis.call('ZADD', ns .. 'put_off', planned, row.seq)
  if (row.waits_lane or '') ~= '' then
    redis.call('SADD', ns .. 'expecting:' .. row.waits_lane, row.seq)
  end
end

-- It waits for no lane but its own any more.
function jobs.expect_nothing(row)
  if (row.waits_lane or '') ~= '' then
    redis.call('SREM', ns .. 'expecting:' .. row.waits_lane, row.seq)
    jobs.save(row, {waits_lane = ''})
  end
end

-- Those that wait for a lane which is not their own, or for a budget, are due now.
function jobs.expect_now(name)
  for _, seq in ipairs(redis.call('SMEMBERS', ns .. 'expecting:' .. name)) do
    local at = redis.call('ZSCORE', ns .. 'scheduled', seq)
    if at and tonumber(at) > now then
      redis.call('HSET', jobs.key(seq), 'run_at', now, 'since', now)
      redis.call('ZADD', ns .. 'scheduled', now, seq)
      redis.call('ZADD', ns .. 'put_off', now, seq)
    end
  end
end

-- It is not scheduled any more.
function jobs.unschedule(seq)
  redis.call('ZREM', ns .. 'scheduled', seq)
  redis.call('ZREM', ns .. 'put_off', seq)
end

-- It stands nowhere, for the moment.
function jobs.step_aside(row)
  if (row.place or '') ~= '' then redis.call('ZREM', jobs.line(row), row.place) end
  jobs.unpause(row)
  jobs.unschedule(row.seq)
end

-- It was claimed, or has ended: enqueueing another with its key makes another.
function jobs.end_burst(row)
  if (row.debounce_key or '') == '' then return end
  local field = jobs.key_field(row.tenant, row.kind, row.debounce_key)
  if redis.call('HGET', ns .. 'debounced', field) == tostring(row.seq) then
    redis.call('HDEL', ns .. 'debounced', field)
  end
end

-- It is not queued any more.
function jobs.unqueue(row)
  jobs.step_aside(row)
  jobs.end_burst(row)
  jobs.expect_nothing(row)
  redis.call('ZREM', ns .. 'queued:' .. row.kind, row.seq)
  redis.call('ZREM', ns .. 'deadlines', row.seq)
  count('queued', row.tenant, row.kind, -1)
end

-- Its lease has ended.
function jobs.let_go(row)
  redis.call('SREM', ns .. 'held:' .. row.holder, row.seq)
  redis.call('SREM', ns .. 'stopping:' .. row.holder, row.seq)
end

function jobs.remember(row, record)
  local history = ns .. 'history:' .. row.seq
  if redis.call('RPUSH', history, record) > HISTORY_LIMIT then
    -- The first run and the newest tell most: the second goes.
    redis.call('LSET', history, 1, '')
    redis.call('LREM', history, 1, '')
  end
end

function jobs.history(seq)
  local records = redis.call('LRANGE', ns .. 'history:' .. seq, 0, -1)
  return '[' .. table.concat(records, ',') .. ']'
end

-- Append lines to what its handler has logged.
function jobs.log(row, lines)
  local text = (redis.call('HGET', ns .. 'log_lines', row.seq) or '') .. lines
  redis.call('HSET', ns .. 'log_lines', row.seq, string.sub(text, -LOG_LIMIT))
end

function jobs.fail(row, error_type, error, record)
  jobs.save(row, {state = 'failed', finished_at = now, error = error, error_type = error_type})
  jobs.remember(row, record)
  redis.call('ZADD', ns .. 'failed', row.seq, row.seq)
  count('failed', row.tenant, row.kind, 1)
end

-- Cancel a job that is not finished. Its children follow, a chunk at a time: see cascade.lua.
function jobs.cancel(row)
  if row.state == 'queued' then
    jobs.unqueue(row)
    redis.call('ZADD', ns .. 'finished', now, row.seq)
  else
    -- Its run has still to end; only then may it be forgotten.
    redis.call('SADD', ns .. 'stopping:' .. row.holder, row.seq)
    count('running', row.tenant, row.kind, -1)
    wake('cancelled')
  end
  jobs.save(row, {state = 'cancelled', finished_at = now})
  count('cancelled', row.tenant, row.kind, 1)
  if redis.call('EXISTS', ns .. 'children:' .. row.id) == 1 then
    redis.call('ZADD', ns .. 'cascades', 0, row.id)
  end
end

-- Delete a finished job and all that refers to it.
function jobs.forget(row)
  redis.call('DEL', jobs.key(row.seq), ns .. 'history:' .. row.seq, ns .. 'steps:' .. row.seq,
    ns .. 'order:' .. row.seq, ns .. 'signals:' .. row.seq)
  redis.call('HDEL', ns .. 'specs', row.seq)
  redis.call('HDEL', ns .. 'payloads', row.seq)
  redis.call('HDEL', ns .. 'results', row.seq)
  redis.call('HDEL', ns .. 'log_lines', row.seq)
  redis.call('ZREM', ns .. 'ids', row.id)
  redis.call('ZREM', ns .. (row.state == 'failed' and 'failed' or 'finished'), row.seq)
  if (row.key or '') ~= '' then
    redis.call('HDEL', ns .. 'keys', jobs.key_field(row.tenant, row.kind, row.key))
  end
  if (row.log or '') ~= '' then
    redis.call('ZREM', ns .. 'log_jobs:' .. pair(row.tenant, row.log), row.seq)
  end
  if (row.parent_id or '') ~= '' then
    redis.call('ZREM', ns .. 'children:' .. row.parent_id, row.seq)
  end
  count(row.state, row.tenant, row.kind, -1)
end

function jobs.key_field(tenant, kind, key) return tenant .. '\n' .. kind .. '\n' .. key end
