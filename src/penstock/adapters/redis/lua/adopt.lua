#!lua flags=allow-oom
-- needs: base lines jobs log turns lane_state usual_amounts amounts learnt limits breaker waiting lanes pick lane_claim claim
-- Jobs that were enqueued where their kind was unknown: the lane of each, or why it has none.

lanes.configure(ask.configs)
for _, job in ipairs(ask.jobs) do
  local row = jobs.load(job.seq)
  -- One that was put off meanwhile has another payload than the one that was looked at.
  local late = row and row.debounce_key and redis.call('ZSCORE', ns .. 'scheduled', job.seq)
  if row and row.state == 'queued' and row.lane == '?' and not late then
    if job.error then
      -- A payload from which no lane can be computed: only its own job fails.
      jobs.unqueue(row)
      local record = '{"attempt":null,"outcome":"failed","finished_at":' .. exact(now)
        .. ',"error":' .. job.error .. '}'
      jobs.fail(row, job.error_type, job.error, record)
      log.append(row, 'failed', '{"error":' .. job.error .. '}')
      wake('finished')
    else
      if job.amount then jobs.save(row, {amount = job.amount}) end
      claim.adopt(row, job.lane, job.timeout, job.max_retries)
    end
  end
end
return done(exact(now))
