#!lua
-- needs: base lines jobs signals
-- Store a signal for a job, and let the job run if it waits for it: {'stored'}, {'repeated'},
-- {'unknown'}, {'finished', state} or {'full'}. The payload is the second argument.

local seq = redis.call('ZSCORE', ns .. 'ids', ask.id)
if not seq then return {'unknown'} end
local row = jobs.load(seq)
local key = signals.key(seq)
-- First of all: who sends it again, not knowing that it has arrived, is told so at any time.
if ask.key and redis.call('HEXISTS', key, 'k:' .. ask.key) == 1 then return {'repeated'} end
if row.state ~= 'queued' and row.state ~= 'running' then return {'finished', row.state} end
if tonumber(redis.call('HGET', key, 'last') or 0) >= ask.limit then return {'full'} end
local number = redis.call('HINCRBY', key, 'last', 1)
redis.call('HSET', key, 's:' .. number, ask.name .. '\n' .. ARGV[2])
redis.call('HINCRBY', key, 'w:' .. ask.name, 1)
if ask.key then redis.call('HSET', key, 'k:' .. ask.key, number) end
if row.state == 'queued' and row.waits_lane == ask.waits then
  jobs.step_aside(row)
  jobs.save(row, {run_at = now_text})
  jobs.schedule(row, now)
  wake('ready')
end
return done({'stored'})
