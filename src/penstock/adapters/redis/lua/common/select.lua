-- Which jobs a filter selects, a bounded number of rows at a time.
--
-- `ask.where` has ids, states, kinds (names; patterns are resolved by the caller), tenant, log,
-- parent_id, error_type, lane, priority, enqueued_after, enqueued_before; every given part must
-- match. The narrowest index there is is read: by log, parent, dead letters or queued kind. There
-- is none by lane or time: then all jobs are gone through, ROWS in a call, and others get their
-- turn between calls.

local ROWS = 500

local select = {}

local function set(list)
  local members = {}
  for _, member in ipairs(list) do members[member] = true end
  return members
end

local where = ask.where
local states, kinds = where.states and set(where.states), where.kinds and set(where.kinds)

local function index()
  if where.log and where.tenant then return ns .. 'log_jobs:' .. pair(where.tenant, where.log) end
  if where.parent_id then return ns .. 'children:' .. where.parent_id end
  if where.states and #where.states == 1 then
    if where.states[1] == 'failed' then return ns .. 'failed' end
    if where.states[1] == 'queued' and where.kinds and #where.kinds == 1 then
      return ns .. 'queued:' .. where.kinds[1]
    end
  end
  return ns .. 'ids'
end

local function matches(row)
  return (not states or states[row.state]) and (not kinds or kinds[row.kind])
    and (not where.tenant or row.tenant == where.tenant)
    and (not where.log or row.log == where.log)
    and (not where.parent_id or row.parent_id == where.parent_id)
    and (not where.error_type or row.error_type == where.error_type)
    and (not where.lane or (row.lane == where.lane and row.lane ~= '' and row.lane ~= '?'))
    and (not where.priority or tonumber(row.priority) == where.priority)
    and (not where.enqueued_after or tonumber(row.at) >= where.enqueued_after)
    and (not where.enqueued_before or tonumber(row.at) < where.enqueued_before)
end

local function by_id()
  local seqs = {}
  for _, id in ipairs(where.ids) do
    seqs[#seqs + 1] = tonumber(redis.call('ZSCORE', ns .. 'ids', id))
  end
  return seqs
end

-- The seqs to look at after `ask.cursor`, in order, and whether there may be more.
local function candidates(newest_first)
  local past = ask.cursor and '(' .. exact(ask.cursor)
  local entries
  if newest_first then
    entries = redis.call(
      'ZREVRANGEBYSCORE', index(), past or '+inf', '-inf', 'WITHSCORES', 'LIMIT', 0, ROWS)
  else
    entries = redis.call(
      'ZRANGEBYSCORE', index(), past or '-inf', '+inf', 'WITHSCORES', 'LIMIT', 0, ROWS)
  end
  local seqs = {}
  for n = 2, #entries, 2 do seqs[#seqs + 1] = tonumber(entries[n]) end
  return seqs, #seqs == ROWS
end

-- Up to `limit` matching rows, and the cursor to go on from, if there may be more.
function select.rows(limit, newest_first)
  local seqs, more
  if where.ids then
    seqs = by_id()
    table.sort(seqs, function(a, b)
      if newest_first then return a > b end
      return a < b
    end)
  else
    seqs, more = candidates(newest_first)
  end
  local rows, looked_at = {}, nil
  for _, seq in ipairs(seqs) do
    local row = jobs.load(seq)
    looked_at = seq
    if row and matches(row) then rows[#rows + 1] = row end
    if #rows >= limit then return rows, looked_at end
  end
  return rows, more and looked_at
end
