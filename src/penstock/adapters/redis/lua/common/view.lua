-- Jobs as people see them.

local view = {}

-- For each of these seqs the row (names and values in turn), its spec, payload, result, history and
-- whether it is scheduled; and what tells why queued ones wait: the kinds each live process handles.
function view.jobs(seqs)
  local found = {}
  for _, seq in ipairs(seqs) do
    local row = redis.call('HGETALL', jobs.key(seq))
    if #row > 0 then
      found[#found + 1] = {
        row, redis.call('HGET', ns .. 'specs', seq), redis.call('HGET', ns .. 'payloads', seq),
        redis.call('HGET', ns .. 'results', seq) or '', jobs.history(seq),
        redis.call('ZSCORE', ns .. 'scheduled', seq) and 1 or 0}
    end
  end
  local served = {}
  for _, number in ipairs(redis.call('ZRANGEBYSCORE', ns .. 'processes', now, '+inf')) do
    served[#served + 1] = redis.call('HGET', ns .. 'process:' .. number, 'kinds')
  end
  return {found, served}
end
