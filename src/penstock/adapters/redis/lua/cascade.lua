#!lua flags=allow-oom
-- needs: base lines jobs log
-- Cancel some of the attached children of one cancelled job: whether there is more to do. Where a
-- large family is gone on with is the score of its parent, a child's seq.

local CHUNK = 200

local parent = redis.call('ZRANGE', ns .. 'cascades', 0, 0, 'WITHSCORES')
if #parent == 0 then return 0 end
local seqs = redis.call(
  'ZRANGEBYSCORE', ns .. 'children:' .. parent[1], '(' .. parent[2], '+inf', 'LIMIT', 0, CHUNK)
for _, seq in ipairs(seqs) do
  local row = jobs.load(seq)
  if row and row.attached == '1' and (row.state == 'queued' or row.state == 'running') then
    jobs.cancel(row)
    log.append(row, 'cancelled', '{}')
    wake('finished')
  end
end
if #seqs == CHUNK then
  redis.call('ZADD', ns .. 'cascades', seqs[CHUNK], parent[1])
else
  redis.call('ZREM', ns .. 'cascades', parent[1])
end
return done(redis.call('EXISTS', ns .. 'cascades'))
