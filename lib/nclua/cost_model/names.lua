--- NCCL's own names and enum values, as its model, its tuner ABI and its logs use them.
local names = {}

--- Modelled collectives in NCCL's enum order (ncclFunc_t 0 … 4).
names.COLLECTIVES = { "broadcast", "reduce", "all_gather", "reduce_scatter", "all_reduce" }

--- Algorithms in enum order (NCCL_ALGO_* 0 … 6); PAT exists from 2.23.
names.ALGORITHMS = {
  "Tree", "Ring", "CollNetDirect", "CollNetChain", "NVLS", "NVLSTree", "PAT",
}

--- Protocols in enum order (NCCL_PROTO_* 0 … 2).
names.PROTOCOLS = { "LL", "LL128", "Simple" }

local LOG_NAMES = {
  Broadcast = "broadcast", Reduce = "reduce", AllGather = "all_gather",
  ReduceScatter = "reduce_scatter", AllReduce = "all_reduce",
}

local function index_of(list)
  local index = {}
  for i, name in ipairs(list) do index[name:lower()] = i end
  return index
end

local ALGORITHM_INDEX = index_of(names.ALGORITHMS)
local PROTOCOL_INDEX = index_of(names.PROTOCOLS)

--- "AllReduce", "all_reduce", "allreduce" → "all_reduce"; nil if it is none of the five.
---@param text string
---@return string?
function names.collective(text)
  if LOG_NAMES[text] then return LOG_NAMES[text] end
  local plain = text:lower():gsub("_", "")
  for _, name in ipairs(names.COLLECTIVES) do
    if name:gsub("_", "") == plain then return name end
  end
end

--- "TREE", "NVLS_TREE", "1" (an enum value) → "Tree", "NVLSTree", "Ring".
---@param text string
---@return string?
function names.algorithm(text)
  if text:match("^%d%d?$") then return names.ALGORITHMS[math.tointeger(text) + 1] end
  return names.ALGORITHMS[ALGORITHM_INDEX[text:lower():gsub("_", "")]]
end

--- "SIMPLE", "2" → "Simple".
---@param text string
---@return string?
function names.protocol(text)
  if text:match("^%d%d?$") then return names.PROTOCOLS[math.tointeger(text) + 1] end
  return names.PROTOCOLS[PROTOCOL_INDEX[text:lower()]]
end

return names
