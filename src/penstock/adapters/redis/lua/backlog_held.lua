#!lua flags=no-writes
-- needs: base lines jobs
-- Jobs that worker processes hold: kind, tenant, lane, band, process, when claimed, amount.

local told = {}
for _, number in ipairs(redis.call('ZRANGE', ns .. 'processes', 0, -1)) do
  local process = redis.call('HGET', ns .. 'process:' .. number, 'id')
  for _, seq in ipairs(redis.call('SMEMBERS', ns .. 'held:' .. number)) do
    local row = jobs.load(seq)
    if row and row.state == 'running' then
      told[#told + 1] = {
        row.kind, row.tenant, row.lane, row.priority, process, row.started_at, row.amount or ''}
    end
  end
end
return told
