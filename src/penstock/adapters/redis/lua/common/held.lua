-- Whether a lease stands: that of the member which asks, who is found to be who it takes itself for.

local is_member = redis.call('HGET', ns .. 'process:' .. ask.member, 'id') == ask.member_id

local function stands(lease)
  if not is_member then return false end
  local row = redis.call('HMGET', ns .. 'job:' .. lease.seq, 'state', 'token', 'holder', 'id')
  return row[1] == 'running' and tonumber(row[2]) == lease.token
    and tonumber(row[3]) == ask.member and row[4] == lease.id
end
