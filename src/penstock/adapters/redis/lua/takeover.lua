#!lua flags=allow-oom
-- needs: base lines jobs log stops lane_state usual_amounts amounts learnt breaker lanes
-- End a membership: queue or bury all that it holds, and forget it. With `renewed`, only if it was not
-- renewed since then. Returns its host and pid, then id and kind of each job that was taken back;
-- 0 where it was not there.
--
-- `started` tells which of its jobs were running ("seq" to {token, end of the id}): those have spent
-- an attempt and have a crash on their record. Without it nobody can tell (the power failed, or the life file is
-- not on this machine). Then a job that was already running alone is taken to be the cause, and
-- the others are only marked, so that from now on they run alone and are counted exactly.

local MAX_RETRIES = 3

local number = ask.member
local process = ns .. 'process:' .. number
local known = redis.call('HMGET', process, 'id', 'life', 'host', 'pid', 'heartbeat_at')
local reply = {known[3], known[4]}
local id = known[1]
if known[2] ~= ask.life or (ask.renewed and tonumber(known[5]) ~= ask.renewed) then return 0 end

local function take_back(row)
  local attempts, crashes = tonumber(row.attempts), tonumber(row.crashes) or 0
  local ran, suspect = crashes > 0, true
  if ask.started then
    local mark = ask.started[tostring(row.seq)]
    ran = mark and mark[1] == tonumber(row.token)
      and mark[2] == string.sub(row.id, -16) or false
    suspect = ran
  end
  local retries = tonumber(row.max_retries) or MAX_RETRIES
  local buried = ran and attempts > retries
  local error = string.format(
    '{"type":"WorkerLost","message":"the worker process running it was lost: %s","retryable":%s}',
    ask.why, tostring(not buried))
  local record = string.format(
    '{"attempt":%d,"outcome":"%s","started_at":%s,"finished_at":%s,"process":"%s","error":%s}',
    attempts, buried and 'failed' or 'lost', row.started_at, exact(now), id, error)
  count('running', row.tenant, row.kind, -1)
  jobs.save(row, {
    holder = '', token = row.token + 1, attempts = ran and attempts or attempts - 1,
    crashes = crashes + (suspect and 1 or 0)})
  if buried then
    jobs.fail(row, 'WorkerLost', error, record)
  else
    jobs.save(row, {state = 'queued', started_at = '', progress = 0})
    if ran then
      jobs.save(row, {error = error, error_type = 'WorkerLost'})
      jobs.remember(row, record)
    end
    jobs.queue(row)
    jobs.stand(row)
  end
  local data = string.format(
    '{"kind":%s,"attempt":%d,"error":%s}', cjson.encode(row.kind), attempts, error)
  if not buried and stops.refuses(row) then
    stops.cancel_requeued(row, data)
  elseif ran then
    log.append(row, buried and 'failed' or 'retry', data)
  end
end

for _, seq in ipairs(redis.call('SMEMBERS', ns .. 'held:' .. number)) do
  local row = jobs.load(seq)
  if row.state == 'running' then
    take_back(row)
    reply[#reply + 1] = row.id
    reply[#reply + 1] = row.kind
  else
    -- Cancelled while it ran: only the run had still to end.
    jobs.save(row, {holder = ''})
    redis.call('ZADD', ns .. 'finished', row.finished_at, seq)
  end
end
lanes.free_slots(number)
redis.call('DEL', process, ns .. 'held:' .. number, ns .. 'stopping:' .. number)
redis.call('ZREM', ns .. 'processes', number)
wake('ready')
wake('finished')
return done(reply)
