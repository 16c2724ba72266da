-- What settlements tell of lanes, and what lanes make of settlements.

local lane_settle = {}

-- Failures {job, token of the last, how many} that turn out to be their lane's have spent no
-- attempt, not even the last one: a job that they ended is queued again. One that runs again goes on,
-- with fewer attempts spent; if it is the run that failed last, that is judged when it ends. One that
-- has run again stays what that has made of it: a dead letter, or asleep.
function lane_settle.return_attempts(failures)
  for _, failure in ipairs(failures) do
    local row = jobs.load(failure[1])
    local attempts = row and tonumber(row.attempts) or 0
    if row and row.state == 'running' then
      local count = failure[3] - (tonumber(row.token) == failure[2] and 1 or 0)
      jobs.save(row, {attempts = math.max(1, attempts - count)})
    elseif row and (row.state == 'queued' or row.state == 'failed')
      and tonumber(row.token) ~= failure[2] then
      jobs.save(row, {attempts = math.max(0, attempts - failure[3])})
    elseif row and (row.state == 'queued' or row.state == 'failed') and attempts > 0 then
      if row.state == 'failed' then
        redis.call('ZREM', ns .. 'failed', row.seq)
        count('failed', row.tenant, row.kind, -1)
        jobs.queue(row)
      else
        jobs.step_aside(row)
      end
      jobs.save(row, {
        attempts = math.max(0, attempts - failure[3]), run_at = now, state = 'queued',
        finished_at = ''})
      jobs.stand(row)
      local data = string.format(
        '{"kind":%s,"attempt":%d,"run_at":%s}', cjson.encode(row.kind), row.attempts, exact(now))
      if stops.refuses(row) then
        stops.cancel_requeued(row, data)
      else
        wake('ready')
        log.append(row, 'released', data)
      end
    end
  end
end

-- Apply what request `ref` of `job` tells of a lane: the lane, and whose fault it was.
function lane_settle.learn_and_save(name, holder, ref, job, token, report)
  local lane = lanes.load(name)
  if not lane then return nil, 'job' end
  local fault, spared, closed = verdict.learn(lane, holder, ref, job, token, report, now)
  lane_settle.return_attempts(spared)
  if closed then lanes.wake_lane(name) end
  if report and (report.took or lane.auto) then
    local some = {lane, lane.parent and lanes.load(lane.parent) or nil}
    verdict.teach(some, report, now)
    if some[2] then lanes.save(some[2]) end
  end
  lanes.save(lane)
  return lane, fault
end

-- Settle what was reserved in a lane, and its parent.
local function pay(name, ref, token, used)
  local some = lanes.with_parent(name)
  if not (some[1] and some[1].used) then return end
  local changed, refunded = amounts.settle(some, ref, token, used, now)
  if changed then
    for _, one in ipairs(some) do lanes.save(one) end
  end
  -- Whoever settles has a worker to spare: nobody else is told.
  if refunded then lanes.look_now(name) end
end

-- Whether the lease still stands: only then it teaches a lane anything, or has a slot to free.
-- With `ended`, also one that has ended since and nobody else has begun.
local function is_held(holder, seq, id, token, ended)
  local found = redis.call('HMGET', jobs.key(seq), 'token', 'holder', 'id')
  local by = found[2] or ''
  return tonumber(found[1]) == token and found[3] == (id or found[3])
    and (tonumber(by) == holder or (ended and by == ''))
end

-- Let lanes learn from settlements, and change those whose failure is the lane's. Returns the
-- numbers of those, and the jobs whose slots are to be freed.
function lane_settle.judge(holder, settlements)
  local faults, latest, in_lanes, spared = {}, {}, {}, {}
  for number, s in ipairs(settlements) do
    local name = verdict.lane_of(s)
    if name ~= '' and is_held(holder, s.seq, s.id, s.token) then
      local job, lane, fault = tonumber(s.seq), nil, nil
      if s.lane then in_lanes[#in_lanes + 1] = job end
      if s.report and s.report.told then
        lane = lanes.load(name)
        fault = lane and verdict.fault_of_told(lane, s.report)
      else
        lane, fault = lane_settle.learn_and_save(name, holder, job, job, s.token, s.report)
      end
      if lane and name == s.lane and lane.used then
        -- Nothing was used where it was not run.
        local unused = s.outcome == 'handed back' and not s.record
        pay(s.lane, job, s.token, unused and {0, 0, 0, 0} or nil)
      end
      if lane then latest[name], faults[number] = lane, fault end
    end
  end
  -- Only now: the first to fail may be in the same batch as the one that opens the breaker.
  for number, fault in pairs(faults) do
    local s = settlements[number]
    if verdict.give(s, latest[verdict.lane_of(s)], fault, now) then
      spared[#spared + 1] = number
    end
  end
  return spared, in_lanes
end

-- End permits, and let their lanes learn how the requests of the holder's jobs went. Of another's
-- job they learn nothing, and only the slot that the permit itself took goes back.
function lane_settle.give_back(holder, returned)
  local refs = {}
  for _, one in ipairs(returned) do
    local ours = one.job <= 0 or is_held(holder, one.job, one.id, one.token, true)
    if ours or one.ref < 0 then
      refs[#refs + 1] = one.ref
      local job, token, report = one.job, one.token, one.report
      if not ours then job, token, report = 0, 0, nil end
      local lane = lane_settle.learn_and_save(one.lane, holder, one.ref, job, token, report)
      if lane and lane.used then
        pay(one.lane, one.started and job or one.ref, one.started and token or 0, one.used)
      end
    end
  end
  lanes.free_slots(holder, refs)
end
