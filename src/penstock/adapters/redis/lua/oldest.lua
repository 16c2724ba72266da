#!lua flags=no-writes
-- needs: base lines jobs
-- Since when the job of this kind (and tenant, if one is named) could run that has waited longest
-- of those looked at, or '' if none of them can: what is for later, or sleeps, does not wait for a
-- worker. And where to go on, or '' at the end.

local ROWS = 1000

local past = ask.cursor and '(' .. exact(ask.cursor) or '-inf'
local seqs = redis.call(
  'ZRANGEBYSCORE', ns .. 'queued:' .. ask.kind, past, '+inf', 'LIMIT', 0, ROWS)
local specs = #seqs > 0 and redis.call('HMGET', ns .. 'specs', unpack(seqs)) or {}
local first = nil
for at, text in ipairs(specs) do
  local spec = jobs.spec(text)
  if not ask.tenant or spec.tenant == ask.tenant then
    local since = tonumber(redis.call('HGET', jobs.key(seqs[at]), 'run_at') or spec.at)
    if since <= now and (not first or since < first) then first = since end
  end
end
return {first and exact(first) or '', #seqs == ROWS and seqs[#seqs] or ''}
