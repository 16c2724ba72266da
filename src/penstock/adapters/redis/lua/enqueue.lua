#!lua
-- needs: base lines jobs log stops turns lane_state usual_amounts amounts learnt breaker lanes view records bursts schedules
-- Store a batch of jobs of one kind, or none of it. An item whose id or key is taken gives the
-- job that has it. The payloads are the arguments after the first.

local ids, made = ask.ids, {}

-- Only a run that goes on has children.
local function parent_runs()
  local seq = redis.call('ZSCORE', ns .. 'ids', ask.parent_id)
  local known = seq and redis.call('HMGET', jobs.key(seq), 'state', 'token', 'holder')
  if not known or known[1] ~= 'running' then return false end
  local token, member = unpack(ask.parent_run)
  return tonumber(known[2]) == token
    and redis.call('HGET', ns .. 'process:' .. known[3], 'id') == member
end

if ask.parent_run and not parent_runs() then return {'parent ended', ask.parent_id} end
if ask.debounce then ask.parent_id, ask.attached = nil, nil end -- it may be the job of many

if ask.tick and not schedules.is(ask.tick) then return {'schedule changed', ask.tick.name} end

local source = ask.records and redis.call('ZSCORE', ns .. 'ids', ask.records[1])
if ask.records and not source then return {'unknown', ask.records[1]} end

local function lane_of(n) return ask.lanes and ask.lanes[n] or ask.lane end

local function key_of(n) return ask.keys and ask.keys[n] or nil end

-- Which item, or else the id of which job, has a key.
local by_key, give_up = {}, {}

-- Find out for one item; the conflict if it is one.
local function resolve(n, key)
  local earlier = by_key[key]
  if type(earlier) == 'number' then
    return ARGV[1 + earlier] ~= ARGV[1 + n] and {'conflict', key, ids[earlier]}
  end
  local seq = redis.call('HGET', ns .. 'keys', jobs.key_field(ask.tenant, ask.kind, key))
  by_key[key] = n
  if not seq then return end
  local known = redis.call('HMGET', jobs.key(seq), 'id', 'state')
  local anew = ask.replace_finished and (known[2] == 'failed' or known[2] == 'cancelled')
  if anew and known[1] ~= ids[n] then
    give_up[n] = seq
  elseif not anew and redis.call('HGET', ns .. 'payloads', seq) ~= ARGV[1 + n] then
    return {'conflict', key, known[1]}
  else
    by_key[key] = known[1]
  end
end

for n = 1, #ids do
  local conflict = key_of(n) and resolve(n, key_of(n))
  if conflict then return conflict end
end

local taken = {}
for first = 1, #ids, 1000 do
  local some = redis.call('ZMSCORE', ns .. 'ids', unpack(ids, first, math.min(first + 999, #ids)))
  for n, seq in ipairs(some) do taken[first + n - 1] = seq end
end

-- Which items make a job, and for the others the id of the job that is there.
local seen, per_lane, answers = {}, {}, {}
local replaced = {}
for n, id in ipairs(ids) do
  local has = key_of(n) and by_key[key_of(n)] or n
  if ask.bursts and not taken[n] then
    local standing, row = bursts.standing(ask.bursts[n], lane_of(n))
    has = standing or n
    if row then replaced[#replaced + 1] = {n, row} end
  end
  if has ~= n then
    answers[#answers + 1] = {n, type(has) == 'number' and ids[has] or has}
  elseif seen[id] or taken[n] then
    answers[#answers + 1] = {n, id}
  else
    seen[id] = true
    made[#made + 1] = n
    per_lane[lane_of(n)] = (per_lane[lane_of(n)] or 0) + 1
  end
end

if #made > 0 and stops.refuses(ask) then return {'log stopped', ask.log} end

if ask.debounce then ask.run_at = now + ask.debounce end
local scheduled = ask.run_at and ask.run_at > now
local turn, places = {}, {}
if not scheduled then
  for lane, jobs_in_lane in pairs(per_lane) do
    local last, step = turns.take(lane, ask.priority, ask.tenant, jobs_in_lane)
    turn[lane], places[lane] = {last, step}, {}
  end
end

local spec = '{"at":' .. exact(now) .. ',' .. string.sub(ask.spec, 2)
local row = {'HSET', '', 'id', '', 'place', ''}
if scheduled then row[#row + 1], row[#row + 2] = 'run_at', exact(ask.run_at) end
if ask.deadline then row[#row + 1], row[#row + 2] = 'deadline', exact(ask.deadline) end
if ask.attached then row[#row + 1], row[#row + 2] = 'attached', ask.attached end
local fixed = #row

-- A row of what this job has beyond the others of the batch.
local function write_row(seq, n, place, lane, key)
  local size = fixed
  row[2], row[4], row[6] = jobs.key(seq), ids[n], place
  if lane ~= '' then row[size + 1], row[size + 2], size = 'lane', lane, size + 2 end
  if key then row[size + 1], row[size + 2], size = 'key', key, size + 2 end
  local amount = ask.amounts and ask.amounts[n]
  if amount then row[size + 1], row[size + 2], size = 'amount', amount, size + 2 end
  if ask.debounce then row[size + 1], row[size + 2], size = 'debounce_key', ask.bursts[n], size + 2 end
  redis.call(unpack(row, 1, size))
end

lanes.configure(ask.configs)
local by_id, specs, payloads, seqs = {}, {}, {}, {}
local last_seq = redis.call('HINCRBY', ns .. 'numbers', 'job', #made)
for number, n in ipairs(made) do
  local seq = string.format('%d', last_seq - #made + number)
  local lane, key, place = lane_of(n), key_of(n), ''
  if not scheduled then
    local at, line = turn[lane], places[lane]
    at[1] = at[1] + at[2]
    place = jobs.place(ask.priority, at[1], seq)
    line[#line + 1], line[#line + 2] = '0', place
  end
  write_row(seq, n, place, lane, key)
  if key then
    if give_up[n] then redis.call('HDEL', jobs.key(give_up[n]), 'key') end
    redis.call('HSET', ns .. 'keys', jobs.key_field(ask.tenant, ask.kind, key), seq)
  end
  if ask.bursts then bursts.note(ask.bursts[n], seq, ids[n]) end
  local at = number * 2
  by_id[at - 1], by_id[at] = seq, ids[n]
  specs[at - 1], specs[at] = seq, spec
  payloads[at - 1], payloads[at] = seq, ARGV[1 + n]
  seqs[at - 1], seqs[at] = seq, seq
end

if #made > 0 then
  many('ZADD', ns .. 'ids', by_id)
  many('HSET', ns .. 'specs', specs)
  many('HSET', ns .. 'payloads', payloads)
  many('ZADD', ns .. 'queued:' .. ask.kind, seqs)
  count('queued', ask.tenant, ask.kind, #made)
  for lane, line in pairs(places) do
    many('ZADD', ns .. 'line:' .. pair(lane, ask.kind), line)
    if lane ~= '' and lane ~= '?' then lines.join(lane, ask.kind, now) end
  end
  if ask.log then
    many('ZADD', ns .. 'log_jobs:' .. pair(ask.tenant, ask.log), seqs)
    redis.call('ZREM', ns .. 'spent', pair(ask.tenant, ask.log))
  end
  if ask.parent_id then many('ZADD', ns .. 'children:' .. ask.parent_id, seqs) end
  for number, n in ipairs(made) do
    local seq = seqs[number * 2]
    if scheduled then
      redis.call('ZADD', ns .. 'scheduled', ask.run_at, seq)
      redis.call('ZADD', ns .. 'put_off', now, seq)
    end
    if ask.deadline then redis.call('ZADD', ns .. 'deadlines', ask.deadline, seq) end
    if ask.log then
      log.append({id = ids[n], tenant = ask.tenant, log = ask.log}, 'queued', ask.data)
    end
  end
  if ask.records then records.take_over(source, ask.records[2], seqs[2]) end
  wake('ready')
end

for _, one in ipairs(replaced) do
  local n, row = unpack(one)
  bursts.replace(row, lane_of(n), ARGV[1 + n], ask.amounts and ask.amounts[n] or nil)
  wake('ready')
end
if ask.tick then schedules.put(ask.tick) end

local old = {}
for _, answer in ipairs(answers) do
  local id = answer[2]
  if not seen[id] and not old[id] then
    old[id] = redis.call('ZSCORE', ns .. 'ids', id)
    old[#old + 1] = old[id]
  end
end
return done({'stored', exact(now), answers, view.jobs(old)})
