-- Ending leases: fenced by the job's id, the token and the holder, who has been found to be the
-- membership it takes itself for. A settlement that is made again changes nothing.

local settle = {}

-- What is written once for a whole batch.
local finished, results, let_go = {}, {}, {}

-- Whether the lease is still the holder's. Not the seq nor the token tells: a server that lost its
-- last second, or a replica that took over, uses numbers again.
local function is_held(row, s, holder)
  return tonumber(row.token) == s.token and tonumber(row.holder) == holder
    and row.id == (s.id or row.id)
end

local function stands(row, s, holder) return row.state == 'running' and is_held(row, s, holder) end

local function completed(s, member)
  local found = redis.call('HMGET', jobs.key(s.seq), 'state', 'token', 'holder', 'error', 'id')
  local holder = found[3]
  local row = {state = found[1], token = found[2], holder = holder, id = found[5]}
  if not stands(row, s, member) then return false end
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
  log.append({id = s.id, tenant = s.tenant, log = s.log}, s.outcome, s.data)
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
  jobs.schedule(row, s.finished_at)
  jobs.remember(row, s.record)
end

function endings.failed(s, row)
  jobs.let_go(row)
  count('running', row.tenant, row.kind, -1)
  jobs.fail(row, s.error_type, s.error, s.record)
  jobs.save(row, {holder = '', started_at = s.started_at, finished_at = s.finished_at})
end

-- The run whose attempt is returned; none where the job was not run. What its lane has made of a
-- failure was not known when the record was written.
local function remember_given_back(s, row)
  if s.record then
    jobs.remember(row, (s.record:gsub('"outcome": "[^"]*"', '"outcome": "' .. s.outcome .. '"', 1)))
  end
end

function endings.released(s, row)
  requeue(row, {
    attempts = row.attempts - 1, releases = (row.releases or 0) + 1, run_at = s.run_at,
    message = s.message, waits_lane = s.waits_lane or ''})
  jobs.schedule(row, s.finished_at)
  remember_given_back(s, row)
end

-- It is due at once if the signal it waits for has come.
function endings.suspended(s, row)
  local waiting = s.signal and redis.call('HGET', ns .. 'signals:' .. row.seq, 'w:' .. s.signal)
  local has_come = (tonumber(waiting) or 0) > 0
  requeue(row, {
    attempts = row.attempts - 1, run_at = has_come and math.min(s.started_at, now) or s.run_at,
    waits_lane = s.waits_lane or ''})
  jobs.schedule(row, now)
end

endings['handed back'] = function(s, row)
  local changes = {
    attempts = row.attempts - 1, progress = 0, message = '', waits_lane = s.waits_lane or ''}
  if s.run_at then
    changes.run_at = s.run_at
    requeue(row, changes)
    jobs.schedule(row, now)
  else
    requeue(row, changes)
    jobs.stand(row)
  end
  remember_given_back(s, row)
end

-- The job was cancelled, and its run has now ended.
local function cancel_seen(s, row, holder)
  if not row or row.state ~= 'cancelled' or not is_held(row, s, holder) then return false end
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
local function one(s, holder)
  if s.outcome == 'completed' and completed(s, holder) then
    wake('finished')
    return false
  end
  local row = jobs.load(s.seq)
  if s.outcome == 'cancel seen' then
    if cancel_seen(s, row, holder) then wake('finished') end
    if not row or not stands(row, s, holder) then return false end
    s.outcome = 'handed back' -- a failover has taken the cancel back
  end
  if row and s.outcome ~= 'completed' and stands(row, s, holder) then
    endings[s.outcome](s, row)
    if row.state == 'queued' and stops.refuses(row) then
      stops.cancel_requeued(row, farewell(s))
      return false
    end
    if s.outcome == 'suspended' then wake('ready') end
    if s.outcome == 'handed back' then
      wake('ready')
    else
      log.append(row, s.outcome, s.data)
      wake('finished')
    end
    return false
  end
  local refused = stale(s, row)
  if cancel_seen(s, row, holder) then wake('finished') end
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
    if one(s, holder) then refused[#refused + 1] = number end
  end
  write_batch()
  if #in_lanes > 0 then lanes.free_slots(holder, in_lanes) end
  return refused, spared
end

-- The numbers of those that are not stored as they are given: what can be said to whoever is no
-- member any more.
function settle.refused(settlements)
  local refused = {}
  for number, s in ipairs(settlements) do
    if s.outcome ~= 'cancel seen' and stale(s, jobs.load(s.seq)) then
      refused[#refused + 1] = number
    end
  end
  return refused
end

function settle.progress(holder, notes)
  for _, note in ipairs(notes) do
    local row = jobs.load(note.seq)
    if row and stands(row, note, holder) then
      if note.fraction then
        jobs.save(row, {progress = note.fraction, message = note.message})
        log.append(row, 'progress', note.data)
      end
      if note.lines then jobs.log(row, note.lines) end
    end
  end
end
