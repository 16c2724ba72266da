-- Jobs as people see them.

local view = {}

-- Those of a lane's row and its parent's that are there, for who wants to know why a job waits.
local function family(name)
  local own = lines.told(name)
  if #own[2] == 0 then return {} end
  local parent = redis.call('HGET', lines.lane_key(name), 'parent')
  return {own, (parent or '') ~= '' and lines.told(parent) or nil}
end

-- For each of these seqs the row (names and values in turn), its spec, payload, result, history,
-- whether it is scheduled, for one in a lane's line how many are ahead of it (else -1), its lines. And
-- what tells why queued ones wait: the kinds each live process handles, their lanes, and the budgets
-- by which some are paused.
function view.jobs(seqs)
  local found, served, names, told, payers, paused = {}, {}, {}, {}, {}, {}
  for _, seq in ipairs(seqs) do
    local row = jobs.load(seq)
    if row then
      local flat, ahead = redis.call('HGETALL', jobs.key(seq)), -1
      if (row.paused or '') ~= '' then payers[row.paused] = true end
      local scheduled = redis.call('ZSCORE', ns .. 'scheduled', seq)
      if row.state == 'queued' and not scheduled and row.lane ~= '' and row.lane ~= '?' then
        ahead, names[row.lane] = lines.ahead(row.lane, row.place), true
      end
      found[#found + 1] = {
        flat, row.spec, redis.call('HGET', ns .. 'payloads', seq),
        redis.call('HGET', ns .. 'results', seq) or '', jobs.history(seq), scheduled and 1 or 0,
        ahead, redis.call('HGET', ns .. 'log_lines', seq) or ''}
    end
  end
  for _, number in ipairs(redis.call('ZRANGEBYSCORE', ns .. 'processes', now, '+inf')) do
    served[#served + 1] = redis.call('HGET', ns .. 'process:' .. number, 'kinds')
  end
  for name in pairs(names) do told[#told + 1] = {name, family(name)} end
  for payer in pairs(payers) do
    paused[#paused + 1] = {payer, redis.call('HGETALL', ns .. 'budget:' .. payer)}
  end
  return {found, served, told, paused}
end
