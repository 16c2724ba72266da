#!lua flags=no-writes
-- needs: base lines jobs select view
-- Jobs that match, newest first, from a bounded number of rows: their view and where to go on.

if ask.before then
  local seq = redis.call('ZSCORE', ns .. 'ids', ask.before)
  if not seq then return {'', {{}, {}, {}, {}}} end
  ask.cursor = tonumber(seq)
end
local rows, cursor = select.rows(ask.limit, true)
local seqs = {}
for n, row in ipairs(rows) do seqs[n] = row.seq end
return {cursor and exact(cursor) or '', view.jobs(seqs)}
