#!lua flags=allow-oom
-- needs: base lines jobs budgets
-- Change a budget, make it, or with no fields delete it. Told by `ends` how the process has read it
-- (none: there was no budget), nothing is done if it is another by now, or another period's: returns 0.

local row = budgets.load(ask.payer)
if (row and exact(row.ends) or '') ~= (ask.ends or '') then return 0 end
if ask.fields then
  local flat = {}
  for name, value in pairs(ask.fields) do
    flat[#flat + 1], flat[#flat + 2] = name, value
  end
  redis.call('HSET', ns .. 'budget:' .. ask.payer, unpack(flat))
  redis.call('SADD', ns .. 'budgets', ask.payer)
else
  redis.call('DEL', ns .. 'budget:' .. ask.payer)
  redis.call('SREM', ns .. 'budgets', ask.payer)
end
budgets.wake(ask.payer)
return done(1)
