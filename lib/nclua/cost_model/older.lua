--- NCCL's model of 2.7 to 2.17, before every algorithm got a graph of its own. Source:
--- ncclTopoTuneModel in src/graph/tuning.cc of 2.7.3, 2.8.3, 2.9.6, 2.10.3, 2.12.7, 2.14.3,
--- 2.15.5 and 2.17.1, restated. Compared with that code on 300 random systems a version,
--- 1.6 million latencies, bandwidths and times: no difference above 1e-6. Not compared: the
--- environment's lists, POWER hosts.
local float32 = require("nclua.cost_model.float32")

local older = {}

local F, min = float32.round, math.min

local PROTOCOL_AT = { LL = 1, LL128 = 2, Simple = 3 }

--- The algorithms of a version, in enum order.
---@param v integer 1712 for 2.17.1
---@return string[]
function older.algorithms(v)
  if v < 1400 then return { "Tree", "Ring", "CollNet" } end
  local list = { "Tree", "Ring", "CollNetDirect", "CollNetChain" }
  if v >= 1700 then list[5] = "NVLS" end
  return list
end

--- The graph that each algorithm works on.
---@param graphs table<string, nclua.cost_model.graph>
---@param none nclua.cost_model.graph what stands for one that was not found
function older.graphs(graphs, none)
  local ring, tree = graphs.ring or none, graphs.tree or none
  local collnet = graphs.collnet_chain or none
  return {
    Tree = tree, Ring = ring, CollNet = collnet, CollNetDirect = collnet,
    CollNetChain = collnet, NVLS = ring,
  }
end

-- Rows 0 Volta, 1 Ampere, 2 Hopper; exact generations only, up to 2.16.
local function architecture(s)
  if s.v >= 1700 then return s.cc >= 90 and 2 or s.cc >= 80 and 1 or 0 end
  if s.cc ~= s.max_cc then return 0 end
  if s.cc == 80 then return 1 end
  return (s.cc == 90 and s.v >= 1500) and 2 or 0
end

local BASE = {
  Tree = { 4.4, 4.4, 0 }, Ring = { 3.6, 10, 8.4 }, CollNet = { 4.4, 4.4, 0 },
  CollNetDirect = { 4.4, 4.4, 0 }, CollNetChain = { 4.4, 4.4, 0 }, NVLS = { 0, 0, 40 },
}

-- NVLINK, PCI, NET; LL, LL128, Simple.
local TREE = { { 0.52, 1.25, 28 }, { 1, 1.9, 28 }, { 5, 8.5, 28 } }
local TREE_27 = { { 0.52, 1.2, 28 }, { 1, 1.9, 28 }, { 5, 8.5, 50 } }
local RING = { { 0.47, 1.9, 3.4 }, { 1, 2.5, 5.7 }, { 2.7, 4, 9.6 } }
local RING_212 = { RING[1], RING[2], { 2.7, 4, 28 } } -- 2.12 and 2.13
local COLLNET = { { 0.5, 1.2, 8 }, { 1, 1.9, 8 }, { 5, 5, 10.7 } }
local COLLNET_29 = { { 0.5, 1.2, 4 }, { 1, 1.9, 5.5 }, { 5, 5, 10.7 } }
local DIRECT = { { 0, 0, 8 }, { 0, 0, 8 }, { 0, 0, 10.7 } }
local NONE = { { 0, 0, 0 }, { 0, 0, 0 }, { 0, 0, 0 } }

local function hardware_rows(s, algorithm)
  local v = s.v
  if algorithm == "Tree" then return v < 800 and TREE_27 or TREE end
  if algorithm == "Ring" then return (v >= 1200 and v < 1400) and RING_212 or RING end
  if algorithm == "CollNet" then return v < 1000 and COLLNET_29 or COLLNET end
  return algorithm == "NVLS" and NONE or DIRECT
end

-- µs a step; POWER hosts make trees cheaper over PCI since 2.10.
local function hardware(s, algorithm, protocol, row)
  local is_cheap = s.cpu_arch == "power" and s.v >= 1000 and row == 2
  if is_cheap and algorithm == "Tree" and protocol == "Simple" then algorithm = "Ring" end
  return hardware_rows(s, algorithm)[row][PROTOCOL_AT[protocol]]
end

local LL_MOST = { [0] = { 39, 39, 20.4 }, { 87.7, 22.5, 19 }, { 87.7, 22.5, 19 } }
local TREE_MOST = { [0] = { 26.5, 18.5, 10 }, { 24, 23.6, 17.8 }, { 24, 23.6, 17.8 } }
local TREE_MOST_29 = { [0] = { 26.5, 18.5, 10 }, { 24, 22.5, 16 } }
local TREE_MOST_217 = { [0] = TREE_MOST[0], TREE_MOST[1], { 38.7, 41.4, 33 } }

-- GB/s a channel of LL128, by collective up to 2.9.
local LL128_BY_COLLECTIVE = {
  broadcast = 18.8, reduce = 12, all_gather = 18.3, reduce_scatter = 15.2,
}

local function ll128_most(s, collective, row)
  if s.v < 1000 then
    return LL128_BY_COLLECTIVE[collective] or (s.v < 800 and 16.7 or 16.9)
  end
  return (s.v >= 1700 and row == 2) and 36.7 or 20
end

local function ll_most(s, row)
  if s.nodes > 1 then row = s.cpu_vendor == "amd" and 1 or 0 end
  return LL_MOST[row][s.scale]
end

local function tree_most(s, g, protocol, row)
  if s.v >= 800 then
    local rows = s.v < 1000 and TREE_MOST_29 or s.v < 1700 and TREE_MOST or TREE_MOST_217
    return g.channels * rows[row][s.scale]
  end
  local is_wide = row == 1 and protocol == "LL128"
  if s.nodes > 2 then return is_wide and 105 or 80 end
  return is_wide and 130 or 110
end

local refine = {}

function refine.Ring(s, g, collective, protocol, total, row)
  if protocol == "Simple" then return total end
  if protocol == "LL128" then
    return min(total * (s.ppn < 2 and 0.7 or 0.92),
      ll128_most(s, collective, row) * g.channels)
  end
  local is_slow = s.nodes > 1 or collective == "all_reduce" or collective == "reduce"
  local own = total / (is_slow and 4 or 3)
  return s.v < 800 and own or min(ll_most(s, row), own)
end

function refine.Tree(s, g, collective, protocol, total, row)
  total = min(total * (s.v < 800 and 0.9 or 0.92), tree_most(s, g, protocol, row))
  if protocol == "LL" then
    return s.v < 800 and total / 3.8 or min(total / 3.8, ll_most(s, row))
  end
  if protocol == "Simple" then return total end
  local share = s.nodes == 1 and 7 / 9 or s.v < 1000 and 0.915 or 120 / 128
  local most = ll128_most(s, collective, row) * g.channels
  return min(total * share, s.v < 800 and most * 7 / 9 or most)
end

function refine.CollNet(s, _, _, protocol, total)
  if s.v < 1000 then total = total * 0.9 end
  if protocol == "Simple" then return total end
  return (protocol == "LL" and s.v < 900) and total / 6 or 0
end

function refine.CollNetDirect(s, g, _, protocol, total)
  if protocol ~= "Simple" or g.channels == 0 then return 0 end
  local factor = s.ppn / g.channels
  return total / (factor - (factor - 1) / 2)
end

function refine.CollNetChain(_, _, _, protocol, total)
  return protocol == "Simple" and total * 0.75 or 0
end

function refine.NVLS(_, _, _, _, total) return total end

local function is_gather(collective)
  return collective == "all_gather" or collective == "reduce_scatter"
end

local function steps(s, collective)
  if collective == "all_reduce" then return 2 * (s.ranks - 1) end
  return is_gather(collective) and s.ranks - 1 or s.ranks
end

local function bandwidth(s, collective, algorithm, protocol)
  local g, row = s.graph_of[algorithm], architecture(s)
  local is_collnet = algorithm:find("^CollNet") ~= nil
  local total = F(g.channels * ((s.nodes <= 2 or is_collnet) and g.bw_intra or g.bw_inter))
  if row == 1 then total = s.v < 800 and F(total * 0.92) or min(total, 235) end
  if row == 2 and s.v >= 1700 then total = min(total, 370) end
  local refined = F(refine[algorithm](s, g, collective, protocol, total, row))
  local ratio = algorithm == "Ring" and s.ranks / steps(s, collective)
    or algorithm == "NVLS" and 0.75 or 0.5
  return F(refined * F(ratio)), total -- float32 in NCCL, too
end

-- Steps of a ring that cross nodes: an AllReduce counted one round more since 2.12.
local function network_steps(s, collective)
  if collective ~= "all_reduce" then return s.nodes - 1 end
  if s.v < 1200 then return 2 * (s.nodes - 1) end
  return s.nodes > 1 and 2 * s.nodes or 0
end

local formulas = {}

function formulas.Ring(s, g, collective, protocol, t)
  if collective == "broadcast" or collective == "reduce" then
    if g.same_channels then return t.base + t.here end
    local step = protocol == "Simple" and hardware(s, "Tree", protocol, t.row) or t.here
    return t.base + steps(s, collective) * step
  end
  local outside = network_steps(s, collective)
  return t.base + (steps(s, collective) - outside) * t.intra + outside * t.inter
end

function formulas.Tree(s, _, _, _, t)
  local levels = math.floor(math.log(s.nodes, 2) + 1e-9)
  return t.base + 2 * ((s.ranks // s.nodes - 1) * t.intra + levels * t.inter)
end

function formulas.CollNetDirect(s, _, _, _, t)
  local others = s.ranks // s.nodes - 1
  return t.base + 2 * (min(1, others) * t.intra + others * 0.5) + t.inter
end

function formulas.CollNet(s, g, collective, protocol, t)
  if s.v >= 1000 then return formulas.CollNetDirect(s, g, collective, protocol, t) end
  return t.base + 2 * (s.ranks // s.nodes - 1) * t.intra + t.inter
end

function formulas.CollNetChain(s, _, _, _, t)
  return t.base + 2 * (s.ranks // s.nodes - 1) * t.intra
end

function formulas.NVLS(_, _, _, _, t) return t.base end

local function latency(s, collective, algorithm, protocol)
  local g = s.graph_of[algorithm]
  local inside = g.type_intra == "NVL" and 1 or 2
  local row = s.nodes == 1 and inside or 3
  local t = {
    base = BASE[algorithm][PROTOCOL_AT[protocol]], row = row,
    intra = hardware(s, algorithm, protocol, inside),
    inter = hardware(s, algorithm, protocol, 3),
    here = hardware(s, algorithm, protocol, row),
  }
  local own = g.latency_inter_us or 0
  if s.v >= 1200 and own ~= 0 then t.inter = own end
  if s.nodes > 1 and protocol == "LL" then t.intra = t.intra * 1.8 end
  return F(formulas[algorithm](s, g, collective, protocol, t)), t
end

local function exists(collective, algorithm, protocol)
  if algorithm == "NVLS" then
    return protocol == "Simple" and (collective == "all_reduce" or is_gather(collective))
  end
  return algorithm == "Ring" or collective == "all_reduce"
end

--- Latency in µs and algorithm bandwidth in GB/s of a cell before any is switched off; nil
--- if NCCL has no such cell.
---@return number? latency_us
---@return number? bandwidth_gbps
---@return table? terms
---@return number? total_gbps
function older.cell(s, collective, algorithm, protocol)
  if not exists(collective, algorithm, protocol) then return nil end
  local lat, terms = latency(s, collective, algorithm, protocol)
  local own, total = bandwidth(s, collective, algorithm, protocol)
  return lat, own, terms, total
end

-- The tree's correction by log2(bytes / 64), where it differs from later versions.
local LL128_29 = { 1, 1, 1, 1, 1, 0.9, 0.8, 0.8, 0.8, 0.7, 0.6, 0.6, 0.6, 0.5, 0.6, 0.6,
  0.7, 0.7, 0.8, 0.9, 0.9, 0.92, 0.92 }
local LL128_27 = table.move({ 1 }, 1, 1, 22, table.move(LL128_29, 1, 21, 1, {}))
local SIMPLE_27 = { 0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.8, 0.7, 0.6, 0.6, 0.5, 0.5, 0.5,
  0.5, 0.5, 0.5, 0.6, 0.6, 0.7, 0.8, 0.9 }

--- The correction table of a version; nil: that of later ones.
---@return number[]?
function older.tree_correction(v, protocol)
  if v >= 1000 or protocol == "LL" then return nil end
  if protocol == "LL128" then return v < 800 and LL128_27 or LL128_29 end
  return v < 800 and SIMPLE_27 or nil
end

--- What the latency of a busy ring over several nodes is multiplied with.
---@return number
function older.plateau(s, bytes)
  if bytes < 4096 * s.ranks then return 1 end
  return (s.v >= 1700 and s.cc >= 90) and 1.5 or 1.9
end

return older
