-- Ending leases: fenced by their tokens. A settlement that is made again changes nothing.

local settle = {}

-- What is written once for a whole batch.
local finished, results, let_go = {}, {}, {}

-- Whether the lease stands: the job runs, and nobody has claimed it since. The id tells too: a
-- server that lost its last second in a power cut uses numbers again.
local function stands(row, s)
  return row.state == 'running' and tonumber(row.token) == s.token and row.id == (s.id or row.id)
end

local function completed(s)
  local found = redis.call('HMGET', jobs.key(s.seq), 'state', 'token', 'holder', 'error', 'id')
  local holder = found[3]
  if not stands({state = found[1], token = found[2], id = found[5]}, s) then return false end
  local fields = {
    'state', 'completed', 'holder', '', 'started_at', s.started_at, 'finished_at', s.finished_at}
  if found[4] then
    for _, text in ipairs({'error', '', 'error_type', ''}) do fields[#fields + 1] = text end
  end
  redis.call('HSET', jobs.key(s.seq), unpack(fields))
  local held = let_go[holder] or {}
  let_go[holder], held[#held + 1] = held, s.seq
  finished[#finished + 1], finished[#finished + 2] = s.finished_at, s.seq
  if s.result then
    results[#results + 1], results[#results + 2] = s.seq, ARGV[s.result]
  end
  count('running', s.tenant, s.kind, -1)
  count('completed', s.tenant, s.kind, 1)
  log.append({id = s.id, tenant = s.tenant, task = s.task}, s.outcome, s.data)
  return true
end

-- The job of a lease that stands is queued again, with these changes.
local function requeue(row, changes)
  jobs.let_go(row)
  count('running', row.tenant, row.kind, -1)
  changes.state, changes.holder, changes.started_at = 'queued', '', ''
  jobs.save(row, changes)
  jobs.queue(row)
end

local endings = {}

function endings.retry(s, row)
  requeue(row, {
    error = s.error, error_type = s.error_type, run_at = s.run_at, progress = 0, message = ''})
  jobs.schedule(row)
  jobs.remember(row, s.record)
end

function endings.failed(s, row)
  jobs.let_go(row)
  count('running', row.tenant, row.kind, -1)
  jobs.fail(row, s.error_type, s.error, s.record)
  jobs.save(row, {holder = '', started_at = s.started_at, finished_at = s.finished_at})
end

function endings.released(s, row)
  requeue(row, {
    attempts = row.attempts - 1, releases = (row.releases or 0) + 1, run_at = s.run_at,
    message = s.message, waits_lane = s.waits_lane or ''})
  jobs.schedule(row)
end

endings['handed back'] = function(s, row)
  local changes = {
    attempts = row.attempts - 1, progress = 0, message = '', waits_lane = s.waits_lane or ''}
  if s.run_at then
    changes.run_at = s.run_at
    requeue(row, changes)
    jobs.schedule(row)
  else
    requeue(row, changes)
    jobs.stand(row)
  end
end

-- The job was cancelled, and its run has now ended.
local function cancel_seen(s, row)
  if not row or row.state ~= 'cancelled' or tonumber(row.token) ~= s.token or row.holder == '' then
    return false
  end
  jobs.let_go(row)
  jobs.save(row, {holder = ''})
  redis.call('ZADD', ns .. 'finished', row.finished_at, row.seq)
  return true
end

-- One that was already stored with the same token is not stale.
local function stale(s, row)
  return not row or tonumber(row.token) ~= s.token or row.id ~= (s.id or row.id)
    or row.holder ~= '' or row.state == 'cancelled'
end

-- What the log is told of a settlement whose job is not run again.
local function farewell(s)
  local data = cjson.decode(s.data or '{}')
  data.run_at = nil
  return cjson.encode(data)
end

-- Store one outcome; whether it was refused.
local function one(s)
  if s.outcome == 'completed' and completed(s) then
    wake('finished')
    return false
  end
  local row = jobs.load(s.seq)
  if s.outcome == 'cancel seen' then
    if cancel_seen(s, row) then wake('finished') end
    return false
  end
  if row and s.outcome ~= 'completed' and stands(row, s) then
    endings[s.outcome](s, row)
    if row.state == 'queued' and tasks.refuses(row) then
      tasks.cancel_requeued(row, farewell(s))
      return false
    end
    if s.outcome == 'handed back' then
      wake('ready')
    else
      log.append(row, s.outcome, s.data)
      wake('finished')
    end
    return false
  end
  local refused = stale(s, row)
  cancel_seen(s, row)
  return refused
end

local function write_batch()
  for holder, seqs in pairs(let_go) do many('SREM', ns .. 'held:' .. holder, seqs) end
  many('ZADD', ns .. 'finished', finished)
  many('HSET', ns .. 'results', results)
end

-- Store the outcomes whose lease still stands. Returns the numbers of those that do not, and of
-- those whose failure was their lane's.
function settle.all(holder, settlements)
  local spared, in_lanes = lane_settle.judge(holder, settlements)
  local refused = {}
  for number, s in ipairs(settlements) do
    if one(s) then refused[#refused + 1] = number end
  end
  write_batch()
  if #in_lanes > 0 then lanes.free_slots(holder, in_lanes) end
  return refused, spared
end

function settle.progress(notes)
  for _, note in ipairs(notes) do
    local row = jobs.load(note.seq)
    if row and stands(row, note) then
      jobs.save(row, {progress = note.fraction, message = note.message})
      log.append(row, 'progress', note.data)
    end
  end
end
