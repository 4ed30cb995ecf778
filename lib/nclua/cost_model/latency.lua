--- Latency of a cell of NCCL's model table. Source: ncclTopoTuneModel in
--- src/graph/tuning.cc, 2.18 … 2.30.
local bandwidth = require("nclua.cost_model.bandwidth")
local constants = require("nclua.cost_model.constants")
local float32 = require("nclua.cost_model.float32")

local latency = {}

local F, max, min = float32.round, math.max, math.min

--- floor(log2 n); of 0: −1 from 2.22, 0 before.
---@return integer
function latency.log2(v, n)
  if n < 1 then return v >= 2200 and -1 or 0 end
  local log = 0
  while n > 1 do
    n = n >> 1
    log = log + 1
  end
  return log
end

-- Steps of a ring that cross nodes.
local function network_steps(s, collective)
  local is_all_reduce = collective == "all_reduce"
  if s.v >= 2300 then
    if s.nodes == 1 then return 0 end
    return is_all_reduce and 2 * (s.nodes - 1) or s.nodes - 1
  end
  if is_all_reduce then return s.nodes > 1 and 2 * s.nodes or 0 end
  return s.nodes - 1
end

-- One step over the network, with what the network adds itself.
local function network_latency(s, g, algorithm, protocol)
  local row = (s.v >= 2300 and s.ppn == 1) and "Tree" or algorithm
  local e = constants.hardware_latency(s.v, row, protocol, "NET")
  e = e + (g.latency_inter_us or 0)
  return protocol == "Simple" and e + (g.latency_inter_us or 0) or e
end

local function ring(s, g, collective, protocol, t)
  if collective == "broadcast" or collective == "reduce" then
    if g.same_channels then return t.base + t.here end
    local step = t.here
    if protocol == "Simple" then
      step = constants.hardware_latency(s.v, "Tree", "Simple", t.hardware)
    end
    return t.base + bandwidth.steps(s, collective) * step
  end
  local overhead = s.nodes > 1 and s.net_overhead_us or 0
  if protocol == "Simple" then overhead = overhead * 3 end
  local outside = network_steps(s, collective)
  local inside = bandwidth.steps(s, collective) - outside
  return t.base + inside * max(t.intra, overhead) + outside * t.inter
end

local formulas = {}

function formulas.Tree(s, _, _, _, t)
  local depth = s.ranks // s.nodes - 1
  return t.base + 2 * (depth * t.intra + latency.log2(s.v, s.nodes) * t.inter)
end

function formulas.CollNetDirect(s, _, _, _, t)
  local others = s.ranks // s.nodes - 1
  local share = s.v >= 1900 and 0.4 or 0.5
  return t.base + 2 * (min(1, others) * t.intra + others * share) + t.inter
end

function formulas.CollNetChain(s, _, _, _, t)
  return t.base + 2 * (s.ranks // s.nodes - 1) * t.intra + t.inter
end

function formulas.NVLS(s, _, _, _, t)
  if s.v < 1900 then return t.base + (s.nodes > 1 and t.inter or 0) end
  return t.intra + (s.nodes > 1 and t.inter or 0)
end

function formulas.NVLSTree(s, _, _, _, t)
  if s.v < 1900 then return t.base + 2 * (s.nodes - 1) * t.inter end
  return t.base + t.intra + 2 * latency.log2(s.v, s.nodes) * t.inter
end

function formulas.PAT(s, _, _, _, t)
  return 8 + latency.log2(s.v, s.nodes) * t.inter / 3.5 + 2.8 * s.ranks
end

formulas.Ring = ring

--- The latency of a cell in µs; the second value holds its terms.
---@return number µs
---@return table terms base, intra, inter, here (µs a step), hardware (row)
function latency.cell(s, collective, algorithm, protocol)
  local v, g = s.v, s.graph_of[algorithm]
  local inside = g.type_intra == "NVL" and "NVLINK" or "PCI"
  local hardware = s.nodes == 1 and inside or "NET"
  local t = {
    base = constants.base_latency(v, algorithm, protocol),
    intra = constants.hardware_latency(v, algorithm, protocol, inside),
    inter = network_latency(s, g, algorithm, protocol),
    here = constants.hardware_latency(v, algorithm, protocol, hardware),
    hardware = hardware,
  }
  return F(formulas[algorithm](s, g, collective, protocol, t)), t
end

return latency
