#!lua flags=allow-oom
-- needs: base lines jobs turns
-- Lift jobs of this kind that have waited long by one band, to the end of its line: how many.

local STEP = 40
local LINES = 50
local HEADS = 100

local before, lifted = now - ask.ageing_seconds, 0

-- The claimable jobs at the head of one band of a line that have waited long.
local function aged(line, band)
  local rows = {}
  local places = redis.call(
    'ZRANGEBYLEX', line, '[' .. band, '(' .. (band + 1), 'LIMIT', 0, HEADS)
  for _, place in ipairs(places) do
    local row = jobs.load(jobs.seq(place))
    if tonumber(row.since) <= before then rows[#rows + 1] = row end
  end
  return rows
end

local lanes = redis.call('ZRANGE', ns .. 'lines:' .. ask.kind, 0, LINES - 1)
lanes[#lanes + 1] = ''
for _, lane in ipairs(lanes) do
  local line = ns .. 'line:' .. pair(lane, ask.kind)
  -- Both before either is lifted: one step at a time.
  local low, medium = aged(line, 90), aged(line, 50)
  for _, rows in ipairs({low, medium}) do
    for _, row in ipairs(rows) do
      jobs.step_aside(row)
      turns.place(row, row.lane, turns.band(row) - STEP)
      lifted = lifted + 1
    end
  end
end
if lifted > 0 then wake('ready') end
return done(lifted)
