--- The system that nclua.cost_model.model() takes, from a parsed log: every rank prints the
--- graphs that it found, and NCCL works with what all of them can do. Pure: no I/O.
local constants = require("nclua.cost_model.constants")

local from_log = {}

-- Compute capability × 10 by words in a device's name, most telling first.
local CAPABILITIES = {
  { "B300", 103 }, { "GB300", 103 }, { "B200", 100 }, { "B100", 100 }, { "GB200", 100 },
  { "RTX 50", 120 }, { "RTX PRO 6000 Blackwell", 120 }, { "RTX PRO", 120 },
  { "H100", 90 }, { "H200", 90 }, { "H800", 90 }, { "H20", 90 }, { "GH200", 90 },
  { "L40", 89 }, { "RTX 40", 89 }, { "Ada", 89 }, { "L4", 89 },
  { "A100", 80 }, { "A800", 80 }, { "A30", 80 }, { "RTX 30", 86 }, { "RTX A", 86 },
  { "A10", 86 }, { "A40", 86 }, { "A16", 86 },
  { "T4", 75 }, { "RTX 20", 75 }, { "Quadro RTX", 75 }, { "TITAN RTX", 75 },
  { "V100", 70 }, { "TITAN V", 70 }, { "P100", 60 }, { "P40", 61 }, { "P4", 61 },
}

--- Compute capability × 10 of a device, by its name; nil if it is not known.
---@param name string "NVIDIA H100 80GB HBM3"
---@return integer?
function from_log.capability(name)
  for _, row in ipairs(CAPABILITIES) do
    if name:find(row[1], 1, true) then return row[2] end
  end
end

local function longer(version, a, b)
  local rank_a = constants.path_rank(version, a) or -1
  local rank_b = constants.path_rank(version, b) or -1
  return rank_b > rank_a and b or a
end

-- A merged graph: the least of what ranks found, the longest of their paths.
local function merge(version, into, graph)
  into.channels = math.min(into.channels, graph.channels)
  into.bw_intra = math.min(into.bw_intra, graph.bw_intra)
  into.bw_inter = math.min(into.bw_inter, graph.bw_inter)
  into.same_channels = into.same_channels and graph.same_channels
  into.type_intra = longer(version, into.type_intra, graph.type_intra)
  into.type_inter = longer(version, into.type_inter, graph.type_inter)
end

local FIELDS = {
  "pattern", "channels", "bw_intra", "bw_inter", "type_intra", "type_inter",
  "same_channels",
}

local NAMES = { "ring", "tree", "collnet_chain", "collnet_direct", "nvls" }

-- NCCL's own numbers for path types that its log of 2.5 prints.
local function copy(graph)
  local new = {}
  for _, field in ipairs(FIELDS) do new[field] = graph[field] end
  return new
end

local function merged_graphs(version, members)
  local graphs, most_tree = {}, nil
  for _, member in ipairs(members) do
    for _, name in ipairs(NAMES) do
      local graph = member.graphs[name]
      if graph and graphs[name] then
        merge(version, graphs[name], graph)
      elseif graph then
        graphs[name] = copy(graph)
      end
    end
    local tree = member.graphs.tree
    if tree then most_tree = math.max(most_tree or 0, tree.pattern) end
  end
  if graphs.ring and graphs.tree then
    local channels = math.min(graphs.ring.channels, graphs.tree.channels)
    graphs.ring.channels, graphs.tree.channels = channels, channels
  end
  return graphs, most_tree
end

local function host_of(members)
  local vendor, arch, has_switch
  for _, member in ipairs(members) do
    local system = member.system or {}
    arch = arch or system.cpu_arch
    if vendor and system.cpu_vendor and vendor ~= system.cpu_vendor then
      vendor = "mixed"
    end
    vendor = vendor or system.cpu_vendor
    has_switch = has_switch or system.has_nvswitch
  end
  return arch, vendor, has_switch and 1 or 0
end

-- Every process must have set it, or the last one that did decides: NCCL's rank 0 prints.
local function variable(log, name)
  for _, entry in ipairs(log.env) do
    if entry.name == name then return entry.value end
  end
  return nil
end

-- Since 2.18 a chain graph is only searched where a plugin offers collectives.
local function has_collnet(version, graphs)
  local chain = graphs.collnet_chain
  return {
    supported = version >= constants.OWN_GRAPHS and chain ~= nil and chain.channels > 0,
  }
end

---@class nclua.from_log.options what the log cannot say; all may be left out but cc
---@field cc integer? compute capability × 10; else from `device`
---@field device string? a device's name
---@field ranks integer? if no line of the log says it
---@field nodes integer?
---@field version string?
---@field collnet table? as the model takes it
---@field communicator integer? default 1, the largest

--- A system for nclua.cost_model.model() from a parsed log.
---@param log nclua.nccl_log.result
---@param options nclua.from_log.options?
---@return nclua.cost_model.system? system
---@return string? message what is missing
---@return string? code "EINVAL"
function from_log.system(log, options)
  options = options or {}
  local group = log.communicators[options.communicator or 1]
  if not group then return nil, "the log tells of no communicator", "EINVAL" end
  local version = options.version or log.version
  local code, message = constants.version_code(version or "?")
  if not code then return nil, message, "EINVAL" end
  local cc = options.cc or (options.device and from_log.capability(options.device))
  local ranks = group.ranks or options.ranks
  if not cc then return nil, "the compute capability is not known: give cc", "EINVAL" end
  if not ranks then return nil, "the number of ranks is not known", "EINVAL" end
  local graphs, most_tree = merged_graphs(code, group.members)
  if not graphs.ring then return nil, "the log has no graph lines", "EINVAL" end
  local arch, vendor, switches = host_of(group.members)
  local channels = group.channels or {}
  local overhead = tonumber(variable(log, "NCCL_NET_OVERHEAD"))
  return {
    version = version, cc = cc, ranks = ranks, graphs = graphs,
    nodes = group.nodes or options.nodes or log.nodes or 1,
    coll_channels = channels.coll or group.declared_channels,
    nvls_channels = channels.nvls or 0, max_tree_pattern = most_tree,
    max_local_ranks = group.local_ranks, cpu_arch = arch, cpu_vendor = vendor,
    nvswitches = switches, collnet = options.collnet or has_collnet(code, graphs),
    net_overhead_us = overhead and overhead / 1000, algo = variable(log, "NCCL_ALGO"),
    proto = variable(log, "NCCL_PROTO"),
  }
end

return from_log
