-- Lanes: their rows, their slots, and who waits for them.
--
-- A lane nobody uses, in no trouble, is deleted after an hour with all that is kept of it.
--   lanes             sorted set of the lanes in use, by when they were last used
--   lane:NAME         hash: see lane_state.lua, and health_url, probe_seconds, probed_at; limits,
--                     what an operator has given it, as JSON, and own_..., what follows from that;
--                     learnt_parallel, what it has learnt instead of max_parallel
--   family:NAME       set of the lanes whose parent it is
--   troubled          sorted set of the lanes that are open, under suspicion or blocked for
--                     credentials, by when to probe them next (infinite: there is nothing to probe)
--   slots:LANE        set of "holder ref", the requests open (or about to be) in a lane; counted,
--                     never added up. ref is a job's seq, or negative for a permit inside a job
--   slots:LANE?       those of them that are questions'
--   slotted:NUMBER    hash ref -> the lanes it has slots in, of one member; slots end with it
--   expecting:LANE    set of seqs scheduled until LANE, not their own, recovers

local lanes = {}

local TEXTS = {
  parent = true, blocked_why = true, tried = true, doubted = true, refusers = true,
  address = true, health_url = true, limits = true, amounts = true, used = true,
  auto = true, learnt = true}
local FRESH = {
  next_start = 0, day = 0, used_today = 0, day_offset = 0, slowdown = 1, limited = 0, praised = 0,
  refusers = '[]', blocked_until = 0, step = 0, retry_at = 0, tried = '[]', doubted = '[]',
  suspect_token = 0, suspect_failures = 0, suspect_at = 0, probed_at = 0, asked_until = 0}
local CONFIGURED = {
  'parent', 'spacing', 'tolerance', 'max_parallel', 'per_day', 'timeout', 'breaker_first',
  'breaker_cap', 'credentials', 'health_url', 'probe_seconds', 'amounts', 'auto'}
local OWN = {
  spacing = 'own_spacing', tolerance = 'own_tolerance', max_parallel = 'own_parallel',
  per_day = 'own_per_day'}
local NOT_STORED = {
  name = true, stored = true, in_flight = true, asking = true, touched_at = true}

local function write(lane)
  local fields = {}
  for field, value in pairs(lane) do
    -- Where it is learnt, what was configured stays beside it.
    local is_learnt = field == 'max_parallel' and lane.learnt_parallel
    if not NOT_STORED[field] and not is_learnt and lane.stored[field] ~= value then
      fields[#fields + 1], fields[#fields + 2] = field, value
      lane.stored[field] = value
    end
  end
  for field in pairs(lane.stored) do
    if lane[field] == nil then
      fields[#fields + 1], fields[#fields + 2] = field, ''
      lane.stored[field] = nil
    end
  end
  if #fields > 0 then redis.call('HSET', lines.lane_key(lane.name), unpack(fields)) end
end

-- The row as it is stored.
local function stored(name)
  local flat = redis.call('HGETALL', lines.lane_key(name))
  if #flat == 0 then return nil end
  local lane = {
    name = name, stored = {}, asked_until = 0, suspect_failures = 0,
    touched_at = tonumber(redis.call('ZSCORE', ns .. 'lanes', name) or 0),
    in_flight = redis.call('SCARD', ns .. 'slots:' .. name),
    asking = redis.call('SCARD', ns .. 'slots:' .. name .. lines.QUESTIONS)}
  for n = 1, #flat, 2 do
    local field, value = flat[n], flat[n + 1]
    if value ~= '' then
      lane[field] = TEXTS[field] and value or tonumber(value)
      lane.stored[field] = lane[field]
    end
  end
  return lane
end

-- The lane, with the limits in force: what an operator has given it, else what it has learnt, else
-- what is configured.
function lanes.load(name)
  local lane = stored(name)
  if lane and lane.limits then
    for limit, own in pairs(OWN) do
      if lane[own] then lane[limit], lane.stored[limit] = lane[own], lane[own] end
    end
  end
  if lane and lane.learnt_parallel and not lane.own_parallel then
    lane.max_parallel = lane.learnt_parallel
  end
  if lane and breaker.set_back(lane, now) then
    lanes.save(lane)
    lanes.wake_lane(name)
  end
  return lane
end

-- Give it other limits ({limits, own_...}); what is not there is as configured.
function lanes.limit(name, given)
  local lane = stored(name)
  lane.limits = given.limits
  for _, own in pairs(OWN) do lane[own] = given[own] end
  write(lane)
end

-- The lane and, if it has one, its parent; empty when nobody configured it.
function lanes.with_parent(name)
  local lane = lanes.load(name)
  if not lane then return {} end
  return {lane, lane.parent and lanes.load(lane.parent) or nil}
end

function lanes.save(lane)
  write(lane)
  redis.call('ZADD', ns .. 'lanes', now, lane.name)
  if lane.step > 0 or lane.suspect or lane.blocked_why == breaker.CREDENTIALS then
    local probe_at = lanes.worth_probing(lane) and lane.probed_at + lane.probe_seconds or '+inf'
    redis.call('ZADD', ns .. 'troubled', probe_at, lane.name)
  else
    redis.call('ZREM', ns .. 'troubled', lane.name)
  end
end

-- Whether a probe could tell anything.
function lanes.worth_probing(lane)
  return (lane.step > 0 or breaker.suspected(lane, now)) and (lane.health_url or lane.address)
end

-- Make lanes and their parents known; what has happened in them stays. What is only assumed of a
-- lane never changes the limits it has.
function lanes.configure(configs)
  for _, config in ipairs(configs or {}) do
    local lane = stored(config.name)
    if not lane then
      lane = {name = config.name, stored = {}}
      for field, value in pairs(FRESH) do lane[field] = value end
      redis.call('ZADD', ns .. 'lanes', now, lane.name)
    elseif config.assumed then
      config = nil
    end
    if config then
      if lane.parent and lane.parent ~= config.parent then
        redis.call('SREM', ns .. 'family:' .. lane.parent, lane.name)
      end
      if config.parent then redis.call('SADD', ns .. 'family:' .. config.parent, lane.name) end
      if lane.auto ~= config.auto then lane.learnt_parallel = nil end
      for _, field in ipairs(CONFIGURED) do lane[field] = config[field] end
      write(lane)
    end
  end
end

local function slot(holder, ref) return string.format('%d %d', holder, ref) end

function lanes.take_slots(names, holder, ref)
  if #names == 0 then return end
  for _, name in ipairs(names) do
    redis.call('SADD', ns .. 'slots:' .. name, slot(holder, ref))
  end
  redis.call('HSET', ns .. 'slotted:' .. holder, ref, table.concat(names, '\n'))
end

-- The lanes in which this job has a slot already, as a set.
function lanes.held_by(holder, job)
  local held = {}
  local names = job ~= 0 and redis.call('HGET', ns .. 'slotted:' .. holder, job)
  for name in string.gmatch(names or '', '[^\n]+') do held[name] = true end
  return held
end

-- Kinds that some worker process handles.
local handled

local function is_handled(kind)
  if not handled then
    handled = {}
    for _, number in ipairs(redis.call('ZRANGE', ns .. 'processes', 0, -1)) do
      local kinds = redis.call('HGET', ns .. 'process:' .. number, 'kinds')
      for _, one in ipairs(cjson.decode(kinds)) do handled[one] = true end
    end
  end
  return handled[kind]
end

local woken = {}

-- Let lines that wait for a slot of `lane` be looked at again: of each kind that is handled
-- somewhere, those that have waited longest.
function lanes.wake_waiting(lane, slots)
  for _, kind in ipairs(redis.call('SMEMBERS', ns .. 'waiters:' .. lane)) do
    if is_handled(kind) then
      local longest = redis.call('ZRANGE', ns .. 'waiting:' .. pair(lane, kind), 0, slots - 1)
      for _, name in ipairs(longest) do
        lines.look_at(name, kind, 0)
        woken[#woken + 1] = {name, kind}
      end
    end
  end
end

-- Tell other processes of the lines that slots were freed for, unless a claim in the same trip has
-- served them: in vain they would all come.
function lanes.announce()
  for _, name in ipairs(woken) do
    local at = redis.call('ZSCORE', ns .. 'looks:' .. name[2], name[1])
    if at and tonumber(at) <= now then wake('ready') end
  end
end

-- Give back the slots of these requests (or all of the holder's) and wake who waits.
function lanes.free_slots(holder, refs)
  local slotted, freed = ns .. 'slotted:' .. holder, {}
  for _, ref in ipairs(refs or redis.call('HKEYS', slotted)) do
    for name in pairs(lanes.held_by(holder, ref)) do
      redis.call('SREM', ns .. 'slots:' .. name, slot(holder, ref))
      freed[name] = (freed[name] or 0) + 1
    end
    redis.call('HDEL', slotted, ref)
    if refs and ref < 0 then wake('ready') end -- jobs that wait for a permit stand in no line
  end
  for name, slots in pairs(freed) do
    lanes.wake_waiting(name, slots)
    -- Nor do questions.
    local asked_until = redis.call('HGET', lines.lane_key(name), 'asked_until')
    if tonumber(asked_until or 0) > now then wake('ready') end
  end
end

-- A trial whose slot is gone was made by somebody who is.
function lanes.end_lost_trials(some)
  for _, lane in ipairs(some) do
    if lane.trial and redis.call(
      'SISMEMBER', ns .. 'slots:' .. lane.name, slot(lane.trial_holder, lane.trial)) == 0
    then
      lane.trial, lane.trial_holder = nil, nil
      lanes.save(lane)
    end
  end
end

-- Slots that a line could not use are for others to look at.
function lanes.pass_on(some)
  for _, lane in ipairs(some) do
    local free = lane_state.slots_for_jobs(lane, now)
    if free > 0 and not lane.trial then lanes.wake_waiting(lane.name, free) end
  end
end

-- Lines of the lane are to be looked at now.
function lanes.look_now(name)
  for _, kind in ipairs(redis.call('SMEMBERS', ns .. 'kinds:' .. name)) do
    lines.look_at(name, kind, 0)
  end
end

-- Something changed: look at the lines of the lane and its children now.
function lanes.wake_lane(name)
  jobs.expect_now(name)
  lanes.look_now(name)
  for _, child in ipairs(redis.call('SMEMBERS', ns .. 'family:' .. name)) do lanes.look_now(child) end
  wake('ready')
end
