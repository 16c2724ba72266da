-- Who is first in line, and leasing it. The cost follows what is taken, not the backlog.

local HIGH = 10
local CHUNK = 16

local pick = {}

function pick.high(row) return tonumber(row.priority) <= HIGH end

-- The first places in the lines of these kinds, in one common order: {place, seq, kind, line}.
function pick.first(prefix, lane, kinds, limit)
  local heads, picked = {}, {}
  local chunk = #kinds == 1 and limit or math.min(limit, CHUNK)
  for _, kind in ipairs(kinds) do
    local line = ns .. prefix .. pair(lane, kind)
    local places = redis.call('ZRANGE', line, 0, chunk - 1)
    if #places > 0 then
      heads[#heads + 1] = {line = line, kind = kind, places = places, at = 1, read = #places}
    end
  end
  while #picked < limit and #heads > 0 do
    local best = 1
    for n = 2, #heads do
      if heads[n].places[heads[n].at] < heads[best].places[heads[best].at] then best = n end
    end
    local head = heads[best]
    local place = head.places[head.at]
    picked[#picked + 1] = {
      place = place, seq = jobs.seq(place), kind = head.kind, line = head.line}
    head.at = head.at + 1
    if head.at > #head.places then
      head.places = redis.call('ZRANGE', head.line, head.read, head.read + chunk - 1)
      head.at, head.read = 1, head.read + #head.places
      if #head.places == 0 then table.remove(heads, best) end
    end
  end
  return picked
end

-- These values of what was picked, by its seqs.
local function values(hash, picked)
  local seqs = {}
  for n, one in ipairs(picked) do seqs[n] = one.seq end
  return #seqs > 0 and redis.call('HMGET', ns .. hash, unpack(seqs)) or {}
end

-- Load the rows of what was picked, with at most `ordinary` jobs of less than high priority.
function pick.within(picked, ordinary)
  local kept, specs = {}, values('specs', picked)
  for n, one in ipairs(picked) do
    one.row = jobs.load(one.seq, specs[n])
    local spare = not ordinary or pick.high(one.row)
    if not spare then
      ordinary = ordinary - 1
      spare = ordinary >= 0
    end
    if spare then kept[#kept + 1] = one end
  end
  return kept
end

-- Lease what was picked to this member. The attempt is counted now, and given back if the run
-- turns out not to have started.
function pick.lease(picked, member)
  local places, seqs, held = {}, {}, {}
  for _, one in ipairs(picked) do
    local row, seq = one.row, one.row.seq
    row.token, row.attempts = (row.token or 0) + 1, (row.attempts or 0) + 1
    redis.call(
      'HSET', jobs.key(seq), 'state', 'running', 'token', row.token, 'attempts', row.attempts,
      'holder', member, 'started_at', now_text)
    jobs.expect_nothing(row)
    jobs.unpause(row)
    jobs.end_burst(row)
    if (row.deadline or '') ~= '' then redis.call('ZREM', ns .. 'deadlines', seq) end
    local line, kind = places[one.line] or {}, seqs[one.kind] or {}
    places[one.line], line[#line + 1] = line, one.place
    seqs[one.kind], kind[#kind + 1] = kind, seq
    held[#held + 1] = seq
  end
  for line, some in pairs(places) do many('ZREM', line, some) end
  for kind, some in pairs(seqs) do many('ZREM', ns .. 'queued:' .. kind, some) end
  local first = 1
  for n, one in ipairs(picked) do
    -- Several of one tenant and kind at a time: most claims hold no other.
    local after = picked[n + 1]
    local tenant = one.row.tenant
    if not after or after.kind ~= one.kind or after.row.tenant ~= tenant then
      count('queued', tenant, one.kind, first - n - 1)
      count('running', tenant, one.kind, n + 1 - first)
      first = n + 1
    end
  end
  many('SADD', ns .. 'held:' .. member, held)
end

-- These turns of a lane's line have been served.
function pick.serve(lane, picked)
  local last = {}
  for _, one in ipairs(picked) do last[jobs.band(one.place)] = one.place end
  for _, place in pairs(last) do turns.serve(lane, place) end
end

-- What the holders are told of each: see `lease` in rows.py.
function pick.told(picked)
  local told, payloads = {}, values('payloads', picked)
  for n, one in ipairs(picked) do
    local row, spec = one.row, jobs.spec(one.row.spec)
    -- Only where they are not the spec's: a kind's defaults, a lane's limit.
    local timeout = one.timeout or row.timeout
    timeout = timeout ~= spec.timeout and timeout or ''
    local max_retries = row.max_retries ~= spec.max_retries and row.max_retries or ''
    told[n] = {
      row.seq, row.id, row.spec, payloads[n], row.lane or '', row.key or '',
      row.run_at == row.at and '' or row.run_at, row.deadline or '', timeout, max_retries,
      row.attempts, row.crashes or '0', row.releases or '0', row.token,
      row.token > 1 and jobs.history(row.seq) or '[]', one.start_at or '', one.void_at or ''}
    if one.reserved ~= nil then
      table.insert(told[n], one.reserved)
      table.insert(told[n], one.refused or '')
      table.insert(told[n], one.usual and '1' or '')
    end
  end
  return told
end
