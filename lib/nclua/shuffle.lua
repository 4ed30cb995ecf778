--- A random order that is the same wherever the same seeds are given: ranks that each draw
--- it for themselves agree, and a run can be repeated.
local shuffle = {}

-- splitmix64 (Steele, Lea, Flood, 2014): any seed is good, integers wrap in Lua.
local function mix(state)
  local z = state
  z = (z ~ (z >> 30)) * 0xbf58476d1ce4e5b9
  z = (z ~ (z >> 27)) * 0x94d049bb133111eb
  return z ~ (z >> 31)
end

---@generic T
---@param list T[] is not changed
---@param ... integer seeds
---@return T[]
function shuffle.order(list, ...)
  local state = 0
  for _, seed in ipairs({ ... }) do state = mix(state + seed + 0x9e3779b97f4a7c15) end
  local order = table.move(list, 1, #list, 1, {})
  for i = #order, 2, -1 do
    state = state + 0x9e3779b97f4a7c15
    local j = 1 + (mix(state) >> 1) % i
    order[i], order[j] = order[j], order[i]
  end
  return order
end

return shuffle
