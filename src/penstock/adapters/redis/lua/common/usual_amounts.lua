-- The usual amount of a kind: the twin of penstock/lanes/usual_amounts.py, which says more.

local usual_amounts = {}

do
  local GENERATION = 500
  local LARGEST = 6
  local USUAL_KINDS = 16

  local function empty() return {0, {}, {}, {}, {}} end

  -- What a request of this kind reserves; nil: nothing is known of it.
  function usual_amounts.usual(known, kind)
    for _, row in ipairs(known) do
      if row[1] == kind then
        local found = {0, 0, 0, 0}
        for generation = 2, 3 do
          local one = row[generation]
          for n = 1, 4 do
            if one[1] > 0 then
              found[n] = math.max(found[n], one[1 + n][math.floor(one[1] / 100) + 1])
            end
          end
        end
        return found
      end
    end
    return nil
  end

  -- A request of this kind has used so much.
  function usual_amounts.learn(known, kind, used)
    local row = {kind, empty(), empty()}
    for n, one in ipairs(known) do
      if one[1] == kind then
        row = table.remove(known, n)
        break
      end
    end
    known[#known + 1] = row
    while #known > USUAL_KINDS do table.remove(known, 1) end
    if row[2][1] == GENERATION then row[2], row[3] = empty(), row[2] end
    row[2][1] = row[2][1] + 1
    for n = 1, 4 do
      local largest = row[2][1 + n]
      largest[#largest + 1] = used[n]
      table.sort(largest, function(a, b) return a > b end)
      largest[LARGEST + 1] = nil
    end
  end
end
