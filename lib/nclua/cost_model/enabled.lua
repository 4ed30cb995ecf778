--- Which algorithms and protocols a communicator may use at all: what is there, what the
--- user's NCCL_ALGO and NCCL_PROTO say, and NCCL's own doubts about LL128.
--- Source: ncclTopoTuneModel and parseList in src/graph/tuning.cc, 2.7 … 2.30.
local constants = require("nclua.cost_model.constants")
local names = require("nclua.cost_model.names")

local enabled = {}

-- "ring,tree" or "^ll": a set of names with 0/1 for each, or nil and a message.
local function parse_list(text, list, lookup)
  local body = text:gsub("^%^", "")
  local is_inverted = body ~= text
  local set = {}
  for _, name in ipairs(list) do set[name] = is_inverted end
  for word in body:gmatch("[^,]+") do
    local name = lookup(word)
    if not name then return nil, ("unknown name %q in %q"):format(word, text) end
    set[name] = not is_inverted
  end
  return set
end

--- NCCL_ALGO or NCCL_PROTO in the syntax of 2.24+, "list;function:list"; before, one list
--- for all functions. Gives for each collective a set, or nil where nothing is said.
---@param text string?
---@param list string[] names.ALGORITHMS or names.PROTOCOLS
---@param lookup fun(word: string): string?
---@return table<string, table<string, boolean>>? by_collective
---@return string? message
function enabled.parse(text, list, lookup)
  local by_collective = {}
  if not text or text == "" then return by_collective end
  local is_first = true
  for segment in text:gmatch("[^;]+") do
    local func, body = segment:match("^(%a+):(.*)$")
    local collective = func and names.collective(func)
    if func and not collective then return nil, ("unknown function %q"):format(func) end
    if not func and not is_first then
      return nil, ("%q names no function"):format(segment)
    end
    local set, why = parse_list(body or segment, list, lookup)
    if not set then return nil, why end
    for _, name in ipairs(names.COLLECTIVES) do
      if not collective or collective == name then by_collective[name] = set end
    end
    is_first = false
  end
  return by_collective
end

local function path_at_most(v, name, limit)
  local rank = constants.path_rank(v, name)
  return rank ~= nil and rank <= constants.path_rank(v, limit)
end

local function is_inter_near(s, g)
  local v = s.v
  local most = "PXB"
  if v < 1700 then return path_at_most(v, g.type_inter, most) end
  if v >= 2705 or v < 2700 then
    if s.cc >= 90 and (v < 2700 or s.ll128_c2c ~= false) then most = "PXN" end
  elseif s.cc >= 90 then
    most = s.ll128_c2c ~= false and "P2C" or "PXN"
  end
  return path_at_most(v, g.type_inter, most)
end

local LL128_ARCHITECTURES = { [70] = 0, [80] = 0, [90] = 1500, [100] = 2500, [120] = 2500 }

local function is_ll128_architecture(v, cc)
  if v >= 2700 then return cc >= 70 end
  local since = LL128_ARCHITECTURES[cc]
  return since ~= nil and v >= since
end

-- LL128 relies on 128-byte stores arriving whole: NCCL allows it where it knows they do.
local function is_ll128_safe(s, collective, algorithm)
  local g = s.graph_of[algorithm]
  local is_uniform = s.cc == s.max_cc or (s.v >= 3000 and s.cc >= 90)
  local is_bug = s.cc == 90 and s.built_with_cuda == "11.8" and s.ranks == 2
    and collective == "all_reduce" and algorithm == "Ring"
  return is_inter_near(s, g)
    and path_at_most(s.v, g.type_intra, s.v >= 1803 and "NVB" or "NVL")
    and is_uniform and is_ll128_architecture(s.v, s.cc) and not is_bug
end

local function is_algorithm_here(s, algorithm)
  local has_collnet = s.collnet.supported
  if algorithm == "CollNet" then return has_collnet or s.v < 800 end
  if algorithm == "NVLSTree" and s.nodes == 1 then return false end
  if algorithm == "CollNetDirect" then return has_collnet and s.nvswitches > 0 end
  if algorithm == "CollNetChain" then
    return has_collnet and not (s.v >= 3007 and s.collnet.chain == false)
  end
  if algorithm == "NVLS" and s.v < constants.OWN_GRAPHS then -- 2.17: on the ring's graph
    return s.nvls_channels > 0
  end
  if algorithm == "NVLS" and s.nodes > 1 then return has_collnet end
  return true
end

-- Up to 2.16 a list of algorithms is for AllReduce only, up to 2.18 it spares other rings.
local function is_beyond_list(s, collective, algorithm)
  if collective == "all_reduce" then return false end
  return s.v < 1700 or (s.v < 1900 and algorithm == "Ring")
end

--- May this cell be used? If not, why not.
---@return boolean
---@return string? why
function enabled.cell(s, collective, algorithm, protocol)
  if not is_algorithm_here(s, algorithm) then
    return false, ("%s is not available here"):format(algorithm)
  end
  local algorithms = s.user_algorithms[collective]
  if algorithms and not algorithms[algorithm]
    and not is_beyond_list(s, collective, algorithm) then
    return false, "NCCL_ALGO excludes it"
  end
  local protocols = s.user_protocols[collective]
  if protocols then -- a list replaces the row: LL128 in it is forced on without a check
    if not protocols[protocol] then return false, "NCCL_PROTO excludes it" end
    return true
  end
  if protocol == "LL128" and not is_ll128_safe(s, collective, algorithm) then
    return false, "LL128 is not known to be safe on this path or architecture"
  end
  return true
end

return enabled
