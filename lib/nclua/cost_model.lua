--- NCCL's cost model from first principles: from graph facts to the latency and bandwidth
--- of every collective, algorithm and protocol, and from there to predicted times and the
--- choice that NCCL makes for any size. Pure: no I/O. By version, 2.7 to 2.30; held against
--- NCCL's own code and cost tables (tests/lib/test_cost_model.lua, test_from_log.lua).
local bandwidth = require("nclua.cost_model.bandwidth")
local channels = require("nclua.cost_model.channels")
local constants = require("nclua.cost_model.constants")
local enabled = require("nclua.cost_model.enabled")
local float32 = require("nclua.cost_model.float32")
local latency = require("nclua.cost_model.latency")
local names = require("nclua.cost_model.names")
local older = require("nclua.cost_model.older")

local cost_model = { names = names }

local F = float32.round

---@class nclua.cost_model.graph as a "Pattern" line of the log gives it, merged over ranks
---@field pattern integer
---@field channels integer
---@field bw_intra number GB/s a channel
---@field bw_inter number
---@field type_intra string path type, "NVL"
---@field type_inter string
---@field same_channels boolean
---@field latency_inter_us number?

---@class nclua.cost_model.system
---@field version string|integer NCCL's, "2.28.3"
---@field ranks integer
---@field nodes integer?
---@field cc integer smallest compute capability × 10: 90 for an H100
---@field max_cc integer?
---@field cpu_arch string? "x86" (default), "arm", "power"
---@field cpu_vendor string? "intel" (default), "amd", "mixed"
---@field graphs table<string, nclua.cost_model.graph> ring, tree, collnet_direct,
---collnet_chain, nvls; what is missing was not found
---@field coll_channels integer? of the communicator; computed if not given
---@field nvls_channels integer? 0 where NVLS is not usable
---@field nvswitches integer?
---@field collnet table? supported, heads, gathers, chain
---@field has_pat boolean? default: one rank a node
---@field net_overhead_us number? NCCL_NET_OVERHEAD / 1000
---@field max_local_ranks integer?
---@field algo string? NCCL_ALGO
---@field proto string? NCCL_PROTO

local NO_GRAPH = {
  pattern = 0, channels = 0, bw_intra = 0, bw_inter = 0, type_intra = "LOC",
  type_inter = "LOC", same_channels = false,
}

local function architecture_row(v, cc)
  if cc >= 100 and v >= 2500 then return 4 end
  if cc >= 90 then return 3 end
  return cc >= 80 and 2 or 1
end

-- On several nodes the LL ceiling goes by the CPU's vendor, because the CPU's memory is in
-- the path.
local function ll_row(v, s)
  if s.nodes == 1 then return s.architecture end
  local is_amd = s.cpu_vendor == "amd" or (v >= 2400 and s.cpu_vendor == "mixed")
  return is_amd and 2 or 1
end

local function graphs_of(v, graphs)
  if v < constants.OWN_GRAPHS then return older.graphs(graphs, NO_GRAPH) end
  local chain = graphs.collnet_chain or NO_GRAPH
  local direct = v >= 2200 and graphs.collnet_direct or chain
  local tree, ring = graphs.tree or NO_GRAPH, graphs.ring or NO_GRAPH
  return {
    Tree = tree, Ring = ring, CollNetDirect = direct or NO_GRAPH, CollNetChain = chain,
    NVLS = graphs.nvls or NO_GRAPH, NVLSTree = graphs.nvls or NO_GRAPH, PAT = tree,
  }
end

local function net_overhead(s)
  if s.net_overhead_us then return s.net_overhead_us end
  return (s.cpu_arch == "x86" and s.cpu_vendor == "amd") and 2.0 or 1.0
end

local function algorithms_of(v)
  if v < constants.OWN_GRAPHS then return older.algorithms(v) end
  return table.move(names.ALGORITHMS, 1, v >= 2300 and 7 or 6, 1, {})
end

-- Up to 2.13 there is a CollNet that is neither Direct nor Chain.
local function algorithm_named(word)
  return names.algorithm(word) or (word:lower() == "collnet" and "CollNet") or nil
end

local function user_lists(s, v)
  local algorithms, why = enabled.parse(s.algo, algorithms_of(v), algorithm_named)
  if not algorithms then return nil, nil, "NCCL_ALGO: " .. why end
  local protocols, why_not = enabled.parse(s.proto, names.PROTOCOLS, names.protocol)
  if not protocols then return nil, nil, "NCCL_PROTO: " .. why_not end
  return algorithms, protocols
end

-- Checks a system and derives what the formulas use.
local function prepare(system)
  local v, why = constants.version_code(system.version)
  if not v then return nil, why, "EINVAL" end
  if v < constants.OLDEST then
    return nil, ("NCCL %s is older than 2.7, the oldest that is modelled"):format(
      system.version), "ENOTSUP"
  end
  local s = {}
  for key, value in pairs(system) do s[key] = value end
  s.v = math.min(v, constants.NEWEST)
  s.is_extrapolated = v > constants.NEWEST
  s.nodes = system.nodes or 1
  s.max_cc = system.max_cc or system.cc
  s.cpu_arch, s.cpu_vendor = system.cpu_arch or "x86", system.cpu_vendor or "intel"
  s.ppn = s.ranks / s.nodes
  s.max_local_ranks = system.max_local_ranks or math.ceil(s.ppn)
  s.architecture = architecture_row(s.v, s.cc)
  s.scale = s.nodes <= 2 and s.nodes or 3
  s.ll_row = ll_row(s.v, s)
  s.collnet = system.collnet or { supported = false }
  s.nvswitches = system.nvswitches or 0
  s.has_pat = system.has_pat
  if s.has_pat == nil then s.has_pat = s.nodes == s.ranks and s.nodes > 1 end
  if s.v >= 2600 and s.cc < 60 then s.has_pat = false end
  s.net_overhead_us = net_overhead(s)
  s.graph_of = graphs_of(s.v, system.graphs)
  s.coll_channels = system.coll_channels or channels.communicator(s)
  s.nvls_channels = system.nvls_channels or 0
  s.user_algorithms, s.user_protocols, why = user_lists(system, s.v)
  if not s.user_algorithms then return nil, why, "EINVAL" end
  return s
end

local NO_CELL = "NCCL has no such cell"

local function older_cell(s, collective, algorithm, protocol)
  local lat, own, terms, total = older.cell(s, collective, algorithm, protocol)
  if not lat then return { latency_us = 0, bandwidth_gbps = 0, why = NO_CELL } end
  local is_on, why = enabled.cell(s, collective, algorithm, protocol)
  return {
    latency_us = lat, bandwidth_gbps = is_on and own or 0, why = why, terms = terms,
    total_gbps = total,
  }
end

local function cell_of(s, collective, algorithm, protocol)
  if s.v < constants.OWN_GRAPHS then
    return older_cell(s, collective, algorithm, protocol)
  end
  if not bandwidth.exists(s, collective, algorithm, protocol) then
    return { latency_us = 0, bandwidth_gbps = 0, why = NO_CELL }
  end
  local own, total = bandwidth.cell(s, collective, algorithm, protocol)
  if not own then
    return { latency_us = 0, bandwidth_gbps = 0, why = "too few channels" }
  end
  local lat, terms = latency.cell(s, collective, algorithm, protocol)
  local is_on, why = enabled.cell(s, collective, algorithm, protocol)
  return {
    latency_us = lat, bandwidth_gbps = is_on and own or 0, why = why, terms = terms,
    total_gbps = total,
  }
end

---@class nclua.cost_model.model
---@field cells table<string, table<string, table<string, table>>> [collective][algorithm]
---[protocol]: latency_us, bandwidth_gbps (algorithm bandwidth, 1e9 bytes/s; 0: off), why
---@field system table the prepared system
---@field algorithms string[] those of this version
---@field note string? set when the version is newer than what has been verified

--- The model table of a communicator: what NCCL computes once when it is initialised.
---@param system nclua.cost_model.system
---@return nclua.cost_model.model? model
---@return string? message
---@return string? code "EINVAL", "ENOTSUP"
function cost_model.model(system)
  local s, message, code = prepare(system)
  if not s then return nil, message, code end
  local algorithms = algorithms_of(s.v)
  local cells = {}
  for _, collective in ipairs(names.COLLECTIVES) do
    cells[collective] = {}
    for _, algorithm in ipairs(algorithms) do
      local row = {}
      for _, protocol in ipairs(names.PROTOCOLS) do
        row[protocol] = cell_of(s, collective, algorithm, protocol)
      end
      cells[collective][algorithm] = row
    end
  end
  local note = s.is_extrapolated and ("NCCL %s is newer than 2.30.7, the newest that has "
    .. "been verified: the rules of 2.30.7 were used"):format(system.version) or nil
  return { cells = cells, system = s, algorithms = algorithms, note = note }
end

-- The tree's bandwidth depends on the size by a measured table.
local function corrected(s, collective, algorithm, protocol, bytes, own)
  local is_tree = algorithm == "Tree" and (s.v < 2300 or collective == "all_reduce")
  local is_nvls_tree = algorithm == "NVLSTree" and collective == "all_reduce"
    and s.v >= 2900 and s.cc >= 100 and s.cpu_arch == "x86"
  if not is_tree and not is_nvls_tree then return own, 1 end
  local log = latency.log2(s.v, bytes >> 6)
  local factors = older.tree_correction(s.v, protocol)
    or constants.TREE_CORRECTION[protocol]
  if log < 0 or log >= (s.v >= 2900 and 24 or s.v >= 800 and 23 or 22) then
    return own, 1
  end
  local factor = factors[log + 1]
  return F(own * factor), factor
end

-- A ring over several nodes pays more latency once every channel is busy.
local function plateau(s, collective, algorithm, protocol, bytes, lat)
  local is_open = algorithm == "Ring" and protocol == "Simple" and s.nodes > 1
    and collective == "all_reduce"
  if is_open and s.v < constants.OWN_GRAPHS then
    local factor = older.plateau(s, bytes)
    return F(lat * factor), factor > 1
  end
  local is_busy = is_open and bytes // (s.coll_channels * s.ranks) >= 64
  return is_busy and F(lat * (s.cc < 80 and 1.9 or 1.4)) or lat, is_busy
end

--- The predicted time of one cell in µs; -1 if it is off.
---@param model nclua.cost_model.model
---@param collective string "all_reduce", …
---@param bytes integer the model's bytes: all_gather and reduce_scatter count all ranks'
---@param ops integer? operations pipelined in a group, default 1
---@return number time_us
---@return table? terms latency_us, bandwidth_gbps, correction, is_plateau, repeats
function cost_model.time(model, collective, algorithm, protocol, bytes, ops)
  local s = model.system
  local cell = model.cells[collective][algorithm][protocol]
  if cell.bandwidth_gbps <= 0 then return -1 end
  local own, factor = corrected(s, collective, algorithm, protocol, bytes,
    cell.bandwidth_gbps)
  local lat, is_plateau =
    plateau(s, collective, algorithm, protocol, bytes, cell.latency_us)
  local repeats = ops or 1
  if algorithm ~= "Ring" then
    repeats = math.ceil(repeats / constants.pipeline_divisor(s.v))
  end
  local time = F(F(lat * repeats) + F(F(bytes) / F(1000 * own)))
  return time, {
    latency_us = lat, bandwidth_gbps = own, correction = factor, is_plateau = is_plateau,
    repeats = repeats,
  }
end

-- Cells that the communicator never offers for an operation, although they have a time.
local function is_skipped(s, collective, algorithm)
  if algorithm:match("^NVLS") then
    if s.nvls_channels == 0 then return true end
    local is_all_reduce = collective == "all_reduce"
    if s.v < 2700 and not is_all_reduce and s.nodes > 1 then return true end
    if s.v >= 2500 and not is_all_reduce and s.max_local_ranks > 32 then return true end
    if algorithm == "NVLS" and s.nodes > 1 then return not s.collnet.supported end
  end
  if algorithm:match("^CollNet") then
    if not s.collnet.supported and s.v >= 800 then return true end
    if s.max_local_ranks > 8 and s.v >= (algorithm == "CollNetChain" and 2800 or 2300) then
      return true
    end
  end
  return false
end

--- NCCL's cost table for one operation: what a tuner plugin is handed. -1: not available.
---@param model nclua.cost_model.model
---@param bytes integer the model's bytes
---@param opts { ops: integer?, is_fp8: boolean? }?
---@return table<string, table<string, number>> costs [algorithm][protocol], µs
function cost_model.costs(model, collective, bytes, opts)
  local s, costs = model.system, {}
  local is_slow_fp8 = opts and opts.is_fp8 and s.v >= 2400 and s.ranks > 8
  for _, algorithm in ipairs(model.algorithms) do
    local row = {}
    for _, protocol in ipairs(names.PROTOCOLS) do
      local cost = -1
      if s.ranks > 1 and not is_skipped(s, collective, algorithm) then
        cost = cost_model.time(model, collective, algorithm, protocol, bytes,
          opts and opts.ops)
      end
      if is_slow_fp8 and algorithm == "Ring" and cost >= 0 then cost = F(cost * 1024) end
      row[protocol] = cost
    end
    costs[algorithm] = row
  end
  if s.ranks == 1 then costs.Ring.Simple = 0 end
  return costs
end

--- The choice from a cost table: the first strictly smaller entry in enum order.
---@return string? algorithm
---@return string? protocol
---@return number? time_us
function cost_model.choose(costs, algorithms)
  local best, algorithm, protocol = math.huge, nil, nil
  for _, a in ipairs(algorithms or names.ALGORITHMS) do
    for _, p in ipairs(names.PROTOCOLS) do
      local cost = costs[a] and costs[a][p] or -1
      if cost >= 0 and cost < best then best, algorithm, protocol = cost, a, p end
    end
  end
  return algorithm, protocol, algorithm and best or nil
end

--- The model's bytes of an operation whose buffers hold `bytes` a rank: all_gather and
--- reduce_scatter count what all ranks hold together.
---@return integer
function cost_model.model_bytes(model, collective, bytes)
  local is_gather = collective == "all_gather" or collective == "reduce_scatter"
  return is_gather and bytes * model.system.ranks or bytes
end

---@class nclua.cost_model.choice
---@field algorithm string
---@field protocol string
---@field time_us number
---@field channels integer really used: Hi + 1 of the selection line
---@field max_channels integer
---@field threads integer a channel
---@field costs table

--- What NCCL chooses for an operation.
---@param model nclua.cost_model.model
---@param bytes integer count × element size of the call: per rank for all_gather,
---reduce_scatter
---@param opts { ops: integer?, is_fp8: boolean? }?
---@return nclua.cost_model.choice? choice
---@return string? message
function cost_model.select(model, collective, bytes, opts)
  local s = model.system
  local model_bytes = cost_model.model_bytes(model, collective, bytes)
  local costs = cost_model.costs(model, collective, model_bytes, opts)
  local algorithm, protocol, time = cost_model.choose(costs, model.algorithms)
  if not algorithm then return nil, "no algorithm/protocol available" end
  local most, threads = channels.most(s, algorithm, protocol, model_bytes)
  return {
    algorithm = algorithm, protocol = protocol, time_us = time, costs = costs,
    channels = channels.used(s, collective, algorithm, protocol, bytes, most),
    max_channels = most, threads = threads,
  }
end

return cost_model
