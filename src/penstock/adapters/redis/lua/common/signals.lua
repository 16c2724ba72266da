-- Signals to jobs, in a hash for each job that has got any: see base.lua.

local signals = {}

function signals.key(seq) return ns .. 'signals:' .. seq end

-- Give the oldest signal of a name to a step: its payload; nil if there is none.
function signals.take(seq, name, step)
  local key = signals.key(seq)
  if (tonumber(redis.call('HGET', key, 'w:' .. name)) or 0) == 0 then return nil end
  for n = 1, tonumber(redis.call('HGET', key, 'last')) do
    local signal = redis.call('HGET', key, 's:' .. n)
    local of, payload = string.match(signal or '', '^([^\n]*)\n(.*)$')
    if of == name then
      redis.call('HDEL', key, 's:' .. n)
      redis.call('HSET', key, 't:' .. n, step .. '\n' .. signal)
      redis.call('HINCRBY', key, 'w:' .. name, -1)
      return payload
    end
  end
end

-- Give back what steps have taken: those in the set `steps`, or all.
function signals.untake(seq, steps)
  local key = signals.key(seq)
  for n = 1, tonumber(redis.call('HGET', key, 'last') or 0) do
    local step, signal = string.match(
      redis.call('HGET', key, 't:' .. n) or '', '^([^\n]*)\n(.*)$')
    if step and (not steps or steps[step]) then
      redis.call('HDEL', key, 't:' .. n)
      redis.call('HSET', key, 's:' .. n, signal)
      redis.call('HINCRBY', key, 'w:' .. string.match(signal, '^[^\n]*'), 1)
    end
  end
end
