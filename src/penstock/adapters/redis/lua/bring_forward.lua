#!lua flags=allow-oom
-- needs: base lines jobs
-- Some of the jobs that were put off while the clock was ahead of now: they are due as long from now
-- as they were from then. (Who does not know of `put_off`, in the version before, lets jobs run and end
-- that are still in it.)

local CHUNK = 200

local after = '(' .. exact(now)
for _, seq in ipairs(redis.call('ZRANGEBYSCORE', ns .. 'put_off', after, '+inf', 'LIMIT', 0, CHUNK)) do
  if redis.call('ZSCORE', ns .. 'scheduled', seq) then
    local row = jobs.load(seq)
    jobs.save(row, {run_at = row.run_at - (row.since - now)})
    jobs.schedule(row, now)
  else
    redis.call('ZREM', ns .. 'put_off', seq)
  end
end
wake('ready')
return done(1)
