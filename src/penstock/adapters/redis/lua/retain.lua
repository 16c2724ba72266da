#!lua flags=allow-oom
-- needs: base lines jobs log
-- Delete a chunk of what is past the retention, and logs that have no jobs any more. Returns
-- whether there may be more.

local CHUNK = 200

local past = now - ask.retention_seconds

local function forget_log(name)
  if redis.call('EXISTS', ns .. 'log_jobs:' .. name) == 0 then
    redis.call('DEL', ns .. 'log:' .. name)
  end
end

local seqs = redis.call(
  'ZRANGEBYSCORE', ns .. 'finished', '-inf', '(' .. exact(past), 'LIMIT', 0, CHUNK)
for _, seq in ipairs(seqs) do
  local row = jobs.load(seq)
  jobs.forget(row)
  if (row.log or '') ~= '' then forget_log(pair(row.tenant, row.log)) end
end
local logs = redis.call(
  'ZRANGEBYSCORE', ns .. 'spent', '-inf', '(' .. exact(past), 'LIMIT', 0, CHUNK)
for _, name in ipairs(logs) do
  forget_log(name)
  redis.call('ZREM', ns .. 'spent', name)
end
return done((#seqs == CHUNK or #logs == CHUNK) and 1 or 0)
