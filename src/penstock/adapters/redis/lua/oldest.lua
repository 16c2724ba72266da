#!lua flags=no-writes
-- needs: base lines jobs
-- When the oldest queued job of this kind and tenant was enqueued, or '' if it is not among those
-- looked at; and where to go on, or '' at the end.

local ROWS = 1000

local past = ask.cursor and '(' .. exact(ask.cursor) or '-inf'
local seqs = redis.call(
  'ZRANGEBYSCORE', ns .. 'queued:' .. ask.kind, past, '+inf', 'LIMIT', 0, ROWS)
local specs = #seqs > 0 and redis.call('HMGET', ns .. 'specs', unpack(seqs)) or {}
for _, text in ipairs(specs) do
  local spec = jobs.spec(text)
  if spec.tenant == ask.tenant then return {exact(spec.at), ''} end
end
return {'', #seqs == ROWS and seqs[#seqs] or ''}
