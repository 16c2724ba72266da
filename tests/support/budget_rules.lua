-- needs: base lines jobs budgets
-- Spend of a budget, step by step, and tell what became of it after each.

local told = {}
local row = budgets.load('tenant:a')
for n, step in ipairs(ask.steps) do
  budgets.spend(row, step.at, step.tokens, step.cost, step.lane)
  local warned = budgets.warns(row)
  budgets.save(row)
  told[n] = {
    warned and 1 or 0, budgets.reached(row) and 1 or 0, budgets.closed(row) and 1 or 0,
    budgets.first_closed(budgets.payers('a', 'b')) and 1 or 0, budgets.told('tenant:a')}
end
return told
