#!lua flags=no-writes
-- needs: base lines jobs
-- Some of the dead letters (of a tenant, or of all) by kind and type of error: {kind, type, how
-- many, when the first and the last failed, what the last said, its id}. And where to go on, or ''.

local ROWS = 500

local past = ask.cursor and '(' .. exact(ask.cursor) or '-inf'
local seqs = redis.call('ZRANGEBYSCORE', ns .. 'failed', past, '+inf', 'LIMIT', 0, ROWS)
local specs = #seqs > 0 and redis.call('HMGET', ns .. 'specs', unpack(seqs)) or {}
local groups, found = {}, {}
for n, seq in ipairs(seqs) do
  local spec = jobs.spec(specs[n])
  if not ask.tenant or spec.tenant == ask.tenant then
    local row = redis.call('HMGET', jobs.key(seq), 'error_type', 'finished_at')
    local error_type, at = row[1] or '', tonumber(row[2])
    local name = pair(spec.kind, error_type)
    local group = groups[name]
    if not group then
      group = {kind = spec.kind, type = error_type, count = 0, first = at, last = at, seq = seq}
      groups[name], found[#found + 1] = group, group
    end
    group.count, group.first = group.count + 1, math.min(group.first, at)
    if at >= group.last then group.last, group.seq = at, seq end
  end
end
for n, group in ipairs(found) do
  local row = redis.call('HMGET', jobs.key(group.seq), 'error', 'id')
  local said = cjson.decode(row[1] or '{}').message
  found[n] = {
    group.kind, group.type, group.count, exact(group.first), exact(group.last), said or '', row[2]}
end
return {found, #seqs == ROWS and seqs[#seqs] or ''}
