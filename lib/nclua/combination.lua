--- What a call can be forced to: an algorithm, a protocol and, if it matters, a number of
--- channels; "Tree/Simple/2" as text. `combination.AUTO` leaves the choice to NCCL.
local combination = {}

local names = require("nclua.cost_model.names")

---@class combination
---@field algorithm string "auto", "Ring", ...
---@field protocol string "auto", "Simple", ...
---@field channels integer 0: as many as NCCL takes

---@type combination
combination.AUTO = { algorithm = "auto", protocol = "auto", channels = 0 }

---@param one combination
---@return string "auto", "Tree/Simple", "Tree/Simple/2"
function combination.name(one)
  if one.algorithm == "auto" then return "auto" end
  local name = one.algorithm .. "/" .. one.protocol
  return one.channels > 0 and ("%s/%d"):format(name, one.channels) or name
end

---@param text string "tree/simple/2", "auto"
---@return combination? one
---@return string? message
---@return string? code "EINVAL"
function combination.parse(text)
  if text:lower() == "auto" then return combination.AUTO end
  local algorithm, protocol, channels = text:match("^(%w+)/(%w+)/?(%d*)$")
  local one = algorithm and {
    algorithm = names.algorithm(algorithm), protocol = names.protocol(protocol),
    channels = math.tointeger(tonumber(channels)) or 0,
  }
  if one and one.algorithm and one.protocol then return one end
  return nil, ("'%s' is no combination: expected ALGORITHM/PROTOCOL[/CHANNELS]"):format(
    text), "EINVAL"
end

local function chosen(words, all, lookup, what)
  local list = {}
  for i, word in ipairs(words) do
    if word == "all" then return all end
    list[i] = lookup(word)
    if not list[i] then
      return nil, ("unknown %s '%s': expected %s"):format(what, word,
        table.concat(all, ", ")), "EINVAL"
    end
  end
  return list
end

---Every combination of what was named, in NCCL's own order.
---@param algorithms string[] words, or "all"
---@param protocols string[]
---@param channels integer[] beside NCCL's own number
---@return combination[]? list
---@return string? message
---@return string? code "EINVAL"
function combination.product(algorithms, protocols, channels)
  local a_list, why = chosen(algorithms, names.ALGORITHMS, names.algorithm, "algorithm")
  if not a_list then return nil, why, "EINVAL" end
  local p_list, why_not = chosen(protocols, names.PROTOCOLS, names.protocol, "protocol")
  if not p_list then return nil, why_not, "EINVAL" end
  local list = {}
  for _, algorithm in ipairs(a_list) do
    for _, protocol in ipairs(p_list) do
      for i = 0, #channels do
        list[#list + 1] =
          { algorithm = algorithm, protocol = protocol, channels = channels[i] or 0 }
      end
    end
  end
  return list
end

return combination
