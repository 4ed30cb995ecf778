--- The nearest of some names to a misspelt word.
local nearest = {}

-- Levenshtein's distance, one row at a time.
local function distance(a, b)
  local row = {}
  for j = 0, #b do row[j] = j end
  for i = 1, #a do
    local corner = row[0]
    row[0] = i
    for j = 1, #b do
      local change = corner + (a:byte(i) == b:byte(j) and 0 or 1)
      corner = row[j]
      row[j] = math.min(change, row[j] + 1, row[j - 1] + 1)
    end
  end
  return row[#b]
end

---@param word string
---@param names string[]
---@return string? name nil if none is near
function nearest.of(word, names)
  local best, least = nil, #word // 3 + 1
  for _, name in ipairs(names) do
    local d = distance(word, name)
    if d < least or (d == least and not best) then best, least = name, d end
  end
  return best
end

return nearest
