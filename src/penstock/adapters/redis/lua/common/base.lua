-- The data model. Every key begins with the namespace as its hash tag, so all are in one slot of
-- a cluster. "\n" parts the words inside a name: no lane, kind, tenant or log has one.
--
-- jobs           bounded by the rows: deleted with the job
--   numbers            hash: the last job's seq, the last membership's number; never used again
--   ids                sorted set id -> seq: finds a job, and lists all by age
--   job:SEQ            hash: the row, what changes; an empty field is none. Short values only, so
--                      that Redis keeps it in its compact form. What may be long is beside it:
--   specs              hash seq -> JSON object: kind, tenant, priority, at (enqueued), timeout,
--                      max_retries, log, parent_id, trace, rerun_of. The same text for all jobs
--                      of a batch
--   payloads, results  hash seq -> JSON text (no result: null)
--   log_lines          hash seq -> lines of JSON that handlers logged, the last 64 KiB
--   history:SEQ        list of JSON records, one per ended run; at most 100
--   secrets            hash name -> hex; random values that all processes share
--   steps:SEQ          hash key -> a line of JSON, and after a newline the result, if it has one;
--                      only of jobs that record steps (see adapters/redis/steps.py)
--   order:SEQ          sorted set of the keys of those that are recorded, by position: see records.lua
--   signals:SEQ        hash: last, how many there were; s:N -> name and payload, with a newline between;
--                      t:N the same of those taken, after the key of the step; k:KEY -> N; w:NAME ->
--                      how many of a name are not taken
--   keys               hash tenant, kind, key -> seq
--   log_jobs:TENANT,LOG  sorted set of seqs; children:ID the same for the jobs of a parent, of which
--                      those whose row has `attached` are cancelled with it
--   cascades           sorted set of ids: cancelled jobs whose children are to be cancelled, too
-- where a job stands
--   line:LANE,KIND     sorted set, all scores 0: the places ("band turn seq" in fixed width, so
--                      that their order as text is the order of the line) of those claimable
--   alone:LANE,KIND    the same for those that must run alone, having a crash on their record
--   paused:PAYER,line:LANE,KIND  and alone: the same for those that a budget has paused, whose row has
--                      `paused`; see budgets.lua
--   scheduled          sorted set seq by run_at: queued for later
--   put_off            the same by when that was planned, which is their `since`; see
--                      bring_forward.lua
--   deadlines          sorted set seq by deadline, of those queued
--   queued:KIND        sorted set of seqs, of those queued: the oldest
--   failed             sorted set of seqs: the dead letters
--   finished           sorted set seq by finished_at: completed or cancelled, for retention
--   counts             hash state, kind -> how many; counts:TENANT the same of one tenant
--   turns:LANE         hash: the turn now served of each band, the last one of each band, tenant
-- worker processes     bounded by the members: deleted with the membership
--   processes          sorted set number by lease_until; process:NUMBER hash, the row. A member is
--                      known by the name of its life file too: a server that lost its last second
--                      in a power cut gives numbers again
--   held:NUMBER        set of seqs leased to it; stopping:NUMBER those of them cancelled
-- logs           bounded by the logs that have jobs or are stopped, or were written to lately
--   log:TENANT,LOG     list; the n-th entry is version n
--   spent              sorted set tenant, log by time: logs that no job takes with it, because
--                      the last was discarded or there was none
--   stopped            set of tenant, log: logs that take no jobs, until they are reopened
--   whole              hash of some of these: running jobs that were enqueued by this time may
--                      finish with their children
--   feed:TENANT        stream of what all logs of a tenant got: log, version, entry. Trimmed to the
--                      last hour as it grows, and gone an hour after its last entry
-- schedules      bounded by the schedules that are rows
--   schedules          sorted set of tenant, name; all scores 0
--   schedule_rows      hash of the same -> the revision, a space, and the row as JSON
--   schedule_next      sorted set of the same by next_at, of those that are not paused
--   schedule_counted   the same by when that was computed
-- ledger         bounded: the newest charges; the sums of days stay
--   charges            hash id -> JSON array: see charge.lua; charged: their ids by time
--   usage:DAY          hash tenant, kind, lane, model, number of the figure (requests, tokens, input,
--                      output, cost, of unknown price, reserved) -> sum; usage_days: sorted set of days
--
-- A script is called with the namespace's tag as its key and one JSON object as its first
-- argument. It reads first and writes after, so it does all or nothing. Its clock is the server's.

local ns = KEYS[1] .. ':'
local ask = cjson.decode(ARGV[1])
local clock = redis.call('TIME')
local now = tonumber(clock[1]) + tonumber(clock[2]) / 1000000
-- The same as text, for what is written often: turning a number into text takes time.
local now_text = string.format('%.17g', now)

-- A number as text that reads back as the same number. (Lua's own has 14 digits.)
local function exact(number) return string.format('%.17g', number) end

local function pair(first, second) return first .. '\n' .. second end

-- A command with any number of arguments: Lua takes about 8,000 at a time.
local function many(command, key, arguments)
  for first = 1, #arguments, 1000 do
    redis.call(command, key, unpack(arguments, first, math.min(first + 999, #arguments)))
  end
end

local topics = {}

-- Wake the listeners of this topic once everything is written.
local function wake(topic) topics[topic] = true end

local counts = {}

-- So many jobs of this tenant and kind are in this state now, more or fewer.
local function count(state, tenant, kind, change)
  local states = counts[tenant] or {}
  local kinds = states[state] or {}
  counts[tenant], states[state], kinds[kind] = states, kinds, (kinds[kind] or 0) + change
end

local function write_count(name, field, change)
  if change ~= 0 and redis.call('HINCRBY', ns .. name, field, change) == 0 then
    redis.call('HDEL', ns .. name, field)
  end
end

-- The last thing a script does.
local function done(reply)
  for tenant, states in pairs(counts) do
    for state, kinds in pairs(states) do
      for kind, change in pairs(kinds) do
        write_count('counts', pair(state, kind), change)
        write_count('counts:' .. tenant, pair(state, kind), change)
      end
    end
  end
  for topic in pairs(topics) do redis.call('PUBLISH', ns .. topic, '') end
  return reply
end
