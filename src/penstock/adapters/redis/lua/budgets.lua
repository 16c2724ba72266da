#!lua flags=no-writes
-- needs: base lines jobs budgets
-- All budgets.

local told = {}
for _, payer in ipairs(redis.call('SMEMBERS', ns .. 'budgets')) do
  told[#told + 1] = budgets.told(payer)
end
return told
