#!lua flags=allow-oom
-- needs: base lines jobs
-- Some of the jobs that were put off while the clock was ahead of now: they are due as long from now
-- as they were from then.

local CHUNK = 200

local after = '(' .. exact(now)
for _, seq in ipairs(redis.call('ZRANGEBYSCORE', ns .. 'put_off', after, '+inf', 'LIMIT', 0, CHUNK)) do
  local row = jobs.load(seq)
  jobs.save(row, {run_at = row.run_at - (row.since - now)})
  jobs.schedule(row, now)
end
wake('ready')
return done(1)
