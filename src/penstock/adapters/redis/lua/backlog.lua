#!lua flags=no-writes
-- needs: base lines
-- How long each line is, without a lane or in one, also of jobs that a budget has paused: lane, kind,
-- key, length. And how many jobs are
-- scheduled, in all kinds and lanes.

local found = {}

local function add(lane, kind)
  local whose = {''}
  for _, payer in ipairs(redis.call('SMEMBERS', ns .. 'paused_by:' .. pair(lane, kind))) do
    whose[#whose + 1] = 'paused:' .. payer .. '\n'
  end
  for _, paused in ipairs(whose) do
    for _, prefix in ipairs({'alone:', 'line:'}) do
      local key = paused .. prefix .. pair(lane, kind)
      local length = redis.call('ZCARD', ns .. key)
      if length > 0 then found[#found + 1] = {lane, kind, key, length} end
    end
  end
end

local flat = redis.call('HGETALL', ns .. 'counts')
for n = 1, #flat, 2 do
  local state, kind = string.match(flat[n], '^(.-)\n(.*)$')
  if state == 'queued' then
    add('', kind)
    add('?', kind)
    for _, lane in ipairs(redis.call('ZRANGE', ns .. 'lines:' .. kind, 0, -1)) do add(lane, kind) end
  end
end
return {found, redis.call('ZCARD', ns .. 'scheduled')}
