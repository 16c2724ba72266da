-- Places in line: (band, turn, seq), with tenants taking weighted turns inside a band.

local FEW = 30

local turns = {}

-- A tenant that has had all its turns starts where everybody stands: its field says nothing. Some
-- at a time, whenever turns are served.
local function prune(key)
  local some = redis.call('HRANDFIELD', key, 10, 'WITHVALUES')
  for n = 1, #some, 2 do
    local band = string.match(some[n], '^(%d+)\n')
    local served = band and redis.call('HGET', key, band)
    if served and tonumber(some[n + 1]) <= tonumber(served) then
      redis.call('HDEL', key, some[n])
    end
  end
end

-- Reserve the tenant's next turns: the turn before the first, and the step.
function turns.take(lane, band, tenant, many_turns)
  local key, field = ns .. 'turns:' .. lane, pair(band, tenant)
  local known = redis.call('HMGET', key, field, band)
  local last = math.max(tonumber(known[1] or 0), tonumber(known[2] or 0))
  local step = 1 / (ask.weights and ask.weights[tenant] or 1)
  redis.call('HSET', key, field, last + step * many_turns)
  return last, step
end

-- This place has been claimed.
function turns.serve(lane, place)
  local key, band, turn = ns .. 'turns:' .. lane, jobs.band(place), jobs.turn(place)
  local served = redis.call('HGET', key, band)
  if not served or tonumber(served) < turn then redis.call('HSET', key, band, turn) end
  if redis.call('HLEN', key) > FEW then prune(key) end
end

-- Put a queued job at the end of a line.
function turns.place(row, lane, band)
  local last, step = turns.take(lane, band, row.tenant, 1)
  jobs.save(row, {lane = lane, since = now, place = jobs.place(band, last + step, row.seq)})
  jobs.stand(row)
end

-- The band a queued job is in: its own, or the one it has been lifted to.
function turns.band(row)
  if (row.place or '') ~= '' then return jobs.band(row.place) end
  return tonumber(row.priority)
end
