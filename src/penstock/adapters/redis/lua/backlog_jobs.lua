#!lua flags=no-writes
-- needs: base lines jobs
-- Jobs of the backlog, of parts of lines ({key, from, to}), and of what is scheduled and has finished
-- (the newest first), which are parts by these names. Of lines: tenant, band, turn, amount. Scheduled:
-- kind, tenant, lane, band, when it is due, amount. Finished: kind, lane, when, seconds, attempts, amount.

local function spec_of(seq) return jobs.spec(redis.call('HGET', ns .. 'specs', seq)) end

local function in_line(key, from, to)
  local told = {}
  for _, place in ipairs(redis.call('ZRANGE', ns .. key, from, to)) do
    local seq = jobs.seq(place)
    local spec = spec_of(seq)
    told[#told + 1] = {
      spec.tenant, jobs.band(place), exact(jobs.turn(place)),
      redis.call('HGET', jobs.key(seq), 'amount') or ''}
  end
  return told
end

local function scheduled(from, to)
  local told = {}
  local flat = redis.call('ZRANGE', ns .. 'scheduled', from, to, 'WITHSCORES')
  for n = 1, #flat, 2 do
    local spec = spec_of(flat[n])
    local row = redis.call('HMGET', jobs.key(flat[n]), 'lane', 'amount')
    told[#told + 1] = {
      spec.kind, spec.tenant, row[1] or '', spec.priority, flat[n + 1], row[2] or ''}
  end
  return told
end

local function finished(from, to)
  local told = {}
  for _, seq in ipairs(redis.call('ZREVRANGE', ns .. 'finished', from, to)) do
    local row = redis.call(
      'HMGET', jobs.key(seq), 'state', 'started_at', 'finished_at', 'attempts', 'lane', 'amount')
    if row[1] == 'completed' then
      told[#told + 1] = {
        spec_of(seq).kind, row[5] or '', row[3], exact(tonumber(row[3]) - tonumber(row[2])),
        tonumber(row[4] or 1), row[6] or ''}
    end
  end
  return told
end

local reply = {}
for n, part in ipairs(ask.parts) do
  local key, from, to = unpack(part)
  if key == 'scheduled' then
    reply[n] = scheduled(from, to)
  elseif key == 'finished' then
    reply[n] = finished(from, to)
  else
    reply[n] = in_line(key, from, to)
  end
end
return reply
