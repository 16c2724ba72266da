-- The ordered log of each task: the n-th entry of its list is version n.

local log = {}

function log.key(tenant, task) return ns .. 'log:' .. pair(tenant, task) end

-- `data` is JSON text.
function log.append(row, what, data)
  if (row.task or '') == '' then return end
  local entry = string.format('[%.17g,"%s","%s",', now, what, row.id) .. data .. ']'
  redis.call('RPUSH', log.key(row.tenant, row.task), entry)
  wake('finished')
end
