-- The ordered log of each task: the n-th entry of its list is version n. What all logs of a tenant
-- get is also in its feed, a stream that forgets what is old, and itself when nothing comes.

local log = {}

local FEED_SECONDS = 3600

-- Tenants whose feed this script has trimmed already.
local trimmed = {}

function log.key(tenant, task) return ns .. 'log:' .. pair(tenant, task) end

local function feed(tenant, task, version, entry)
  local key = ns .. 'feed:' .. tenant
  if trimmed[tenant] then
    redis.call('XADD', key, '*', 'task', task, 'version', version, 'entry', entry)
    return
  end
  trimmed[tenant] = true
  local oldest = string.format('%.0f', (now - FEED_SECONDS) * 1000)
  redis.call(
    'XADD', key, 'MINID', '~', oldest, '*', 'task', task, 'version', version, 'entry', entry)
  redis.call('EXPIRE', key, FEED_SECONDS)
end

-- `data` is JSON text.
function log.append(row, what, data)
  if (row.task or '') == '' then return end
  local entry = string.format('[%.17g,"%s","%s",', now, what, row.id) .. data .. ']'
  local version = redis.call('RPUSH', log.key(row.tenant, row.task), entry)
  feed(row.tenant, row.task, version, entry)
  wake('finished')
end
