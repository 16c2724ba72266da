#!lua
-- needs: base lines jobs log turns view
-- Store a batch of jobs of one kind, or none of it. An item whose id or key is taken gives the
-- job that has it. The payloads are the arguments after the first.

local items, made = ask.items, {}

-- Which item, or else the id of which job, has a key.
local by_key, give_up = {}, {}
for n, item in ipairs(items) do
  if item.key then
    local earlier = by_key[item.key]
    if type(earlier) == 'number' then
      if ARGV[1 + earlier] ~= ARGV[1 + n] then
        return {'conflict', item.key, items[earlier].id}
      end
    else
      local field = jobs.key_field(ask.tenant, ask.kind, item.key)
      local seq = redis.call('HGET', ns .. 'keys', field)
      by_key[item.key] = n
      if seq then
        local known = redis.call('HMGET', jobs.key(seq), 'id', 'state')
        local anew = ask.replace_finished and (known[2] == 'failed' or known[2] == 'cancelled')
        if anew and known[1] ~= item.id then
          give_up[n] = seq
        elseif not anew and redis.call('HGET', ns .. 'payloads', seq) ~= ARGV[1 + n] then
          return {'conflict', item.key, known[1]}
        else
          by_key[item.key] = known[1]
        end
      end
    end
  end
end

local seen, per_lane, answers = {}, {}, {}
for n, item in ipairs(items) do
  local has = item.key and by_key[item.key] or n
  if has ~= n then
    answers[n] = type(has) == 'number' and items[has].id or has
  elseif seen[item.id] or redis.call('ZSCORE', ns .. 'ids', item.id) then
    answers[n] = item.id
  else
    seen[item.id], answers[n] = true, ''
    made[#made + 1] = n
    per_lane[item.lane] = (per_lane[item.lane] or 0) + 1
  end
end

local scheduled = ask.run_at and ask.run_at > now
local turn, places = {}, {}
if not scheduled then
  for lane, jobs_in_lane in pairs(per_lane) do
    local last, step = turns.take(lane, ask.priority, ask.tenant, jobs_in_lane)
    turn[lane], places[lane] = {last, step}, {}
  end
end

local row = {
  'HSET', '', 'id', '', 'lane', '', 'place', '', 'state', 'queued', 'kind', ask.kind,
  'tenant', ask.tenant, 'priority', ask.priority, 'at', now, 'since', now,
  'run_at', scheduled and ask.run_at or now}
for _, name in ipairs({'deadline', 'timeout', 'max_retries', 'task', 'parent_id'}) do
  if ask[name] then row[#row + 1], row[#row + 2] = name, ask[name] end
end
local fixed = #row
local ids, payloads, seqs = {}, {}, {}
local last_seq = redis.call('HINCRBY', ns .. 'numbers', 'job', #made)
for made_before, n in ipairs(made) do
  local item, seq = items[n], last_seq - #made + made_before
  local place = ''
  if not scheduled then
    local at = turn[item.lane]
    at[1] = at[1] + at[2]
    place = jobs.place(ask.priority, at[1], seq)
    local line = places[item.lane]
    line[#line + 1], line[#line + 2] = 0, place
  end
  row[2], row[4], row[6], row[8] = jobs.key(seq), item.id, item.lane, place
  row[fixed + 1], row[fixed + 2] = item.key and 'key' or nil, item.key or nil
  redis.call(unpack(row))
  if item.key then
    if give_up[n] then redis.call('HDEL', jobs.key(give_up[n]), 'key') end
    redis.call('HSET', ns .. 'keys', jobs.key_field(ask.tenant, ask.kind, item.key), seq)
  end
  ids[#ids + 1], ids[#ids + 2] = seq, item.id
  payloads[#payloads + 1], payloads[#payloads + 2] = seq, ARGV[1 + n]
  seqs[#seqs + 1], seqs[#seqs + 2] = seq, seq
end

if #made > 0 then
  many('ZADD', ns .. 'ids', ids)
  many('HSET', ns .. 'payloads', payloads)
  many('ZADD', ns .. 'queued:' .. ask.kind, seqs)
  count('queued', ask.kind, #made)
  for lane, line in pairs(places) do
    many('ZADD', ns .. 'line:' .. pair(lane, ask.kind), line)
    if lane ~= '' and lane ~= '?' then lines.join(lane, ask.kind, now) end
  end
  if ask.task then
    many('ZADD', ns .. 'task:' .. pair(ask.tenant, ask.task), seqs)
    redis.call('ZREM', ns .. 'spent', pair(ask.tenant, ask.task))
  end
  if ask.parent_id then many('ZADD', ns .. 'children:' .. ask.parent_id, seqs) end
  for n = 1, #seqs, 2 do
    if scheduled then redis.call('ZADD', ns .. 'scheduled', ask.run_at, seqs[n]) end
    if ask.deadline then redis.call('ZADD', ns .. 'deadlines', ask.deadline, seqs[n]) end
    if ask.task then
      local job = {id = items[made[(n + 1) / 2]].id, tenant = ask.tenant, task = ask.task}
      log.append(job, 'queued', ask.data)
    end
  end
  wake('ready')
end

local old = {}
for n, id in ipairs(answers) do
  if id ~= '' and not seen[id] and not old[id] then
    old[id] = redis.call('ZSCORE', ns .. 'ids', id)
    old[#old + 1] = old[id]
  end
end
return done({'stored', exact(now), answers, view.jobs(old)})
