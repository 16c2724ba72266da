-- Logs: the n-th entry of a log's list is version n. What all logs of a tenant get is also in its
-- feed, a stream that forgets what is old, and itself when nothing comes.

local log = {}

local FEED_SECONDS = 3600

-- Tenants whose feed this script has trimmed already.
local trimmed = {}

function log.key(tenant, name) return ns .. 'log:' .. pair(tenant, name) end

local function feed(tenant, name, version, entry)
  local key = ns .. 'feed:' .. tenant
  if trimmed[tenant] then
    redis.call('XADD', key, '*', 'log', name, 'version', version, 'entry', entry)
    return
  end
  trimmed[tenant] = true
  local oldest = string.format('%.0f', (now - FEED_SECONDS) * 1000)
  redis.call(
    'XADD', key, 'MINID', '~', oldest, '*', 'log', name, 'version', version, 'entry', entry)
  redis.call('EXPIRE', key, FEED_SECONDS)
end

-- `data` is JSON text.
function log.append(row, what, data)
  if (row.log or '') == '' then return end
  local entry = string.format('[%.17g,"%s","%s",', now, what, row.id) .. data .. ']'
  local version = redis.call('RPUSH', log.key(row.tenant, row.log), entry)
  feed(row.tenant, row.log, version, entry)
  wake('finished')
end
