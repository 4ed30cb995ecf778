--- Bandwidth of a cell of NCCL's model table. Source: ncclTopoTuneModel in
--- src/graph/tuning.cc, 2.18 … 2.30. Every product is rounded to float32 where NCCL does.
local constants = require("nclua.cost_model.constants")
local float32 = require("nclua.cost_model.float32")

local bandwidth = {}

local F, min, max = float32.round, math.min, math.max

-- Which cells exist at all; the others stay 0/0 and are not computed.
function bandwidth.exists(s, collective, algorithm, protocol)
  local v = s.v
  local is_simple_only = algorithm:match("^NVLS") or algorithm == "PAT"
  if is_simple_only and protocol ~= "Simple" then return false end
  if collective == "broadcast" or collective == "reduce" then return algorithm == "Ring" end
  if algorithm == "PAT" then
    return collective ~= "all_reduce" and v >= 2300 and s.has_pat
  end
  if collective == "all_reduce" or algorithm == "Ring" then return true end
  if algorithm == "NVLS" then return v >= 1900 end
  if algorithm == "CollNetDirect" then return v >= 2000 end
  return false
end

local function nvls_bandwidth(s, g, collective)
  local v, share = s.v, (s.ppn - 1) / s.ppn
  if v < 1900 then return nil end
  if v < 2700 or (v < 2800 and collective == "all_reduce") then
    return min(g.bw_intra, g.bw_inter)
  end
  if v < 2800 then return min(g.bw_intra * share, 0.9 * g.bw_inter) end
  local efficiency = constants.NVLS_EFFICIENCY[s.architecture]
  local intra = g.bw_intra * efficiency * (g.channels - 1) / g.channels
  return min(intra * (collective == "all_reduce" and 2 or share), g.bw_inter)
end

local function nvls_tree_bandwidth(s, g)
  local v = s.v
  if v < 1900 then return nil end
  if v < 2800 then return min(g.bw_intra, s.nodes <= 2 and g.bw_inter or g.bw_inter / 2) end
  local efficiency = constants.NVLS_EFFICIENCY[s.architecture]
  local intra = g.bw_intra * efficiency * (g.channels - 1) / g.channels * 2
  local inter = g.bw_inter * (s.nodes <= 2 and 2 or 1)
  return min(intra, inter, constants.ceiling(v, "nvls_tree", s.architecture, s.scale))
end

-- GB/s of one channel, before the refinements.
local function channel_bandwidth(s, g, collective, algorithm)
  local own
  if algorithm == "NVLS" then own = nvls_bandwidth(s, g, collective) end
  if algorithm == "NVLSTree" then own = nvls_tree_bandwidth(s, g) end
  if own then return own end
  local is_collnet = algorithm:match("^CollNet")
  return (s.nodes <= 2 or is_collnet) and g.bw_intra or g.bw_inter
end

local function ll_ceiling(s) return constants.ceiling(s.v, "ll", s.ll_row, s.scale) end

local refine = {}

function refine.Ring(s, g, collective, protocol, total)
  if protocol == "LL" then
    local factor = 0.5
    if s.v < 2100 then
      local is_slow = s.nodes > 1 or collective == "all_reduce" or collective == "reduce"
      factor = is_slow and 1 / 4 or 1 / 3
    end
    return F(min(ll_ceiling(s), total * factor))
  end
  if protocol == "LL128" then
    local factor = (s.v < 2300 and s.ppn < 2) and 0.7 or 0.92
    local most = constants.ceiling(s.v, "ring_ll128", s.architecture, s.scale)
    return F(min(total * factor, g.channels * most))
  end
  return total
end

function refine.Tree(s, g, collective, protocol, total)
  local v = s.v
  if v >= 2300 and collective ~= "all_reduce" then return total end
  local most = constants.ceiling(v, "tree", s.architecture, s.scale)
  total = F(min(total * 0.92, g.channels * most))
  if protocol == "LL" then total = F(min(total / 3.8, ll_ceiling(s))) end
  if protocol == "LL128" then
    local factor = s.nodes == 1 and 7 / 9 or 120 / 128
    local line_most = constants.ceiling(v, "tree_ll128", s.architecture, s.scale)
    total = F(min(total * factor, g.channels * line_most))
  end
  local pattern = v >= 2600 and (s.max_tree_pattern or g.pattern) or g.pattern
  if pattern == 3 and v >= 1803 then total = F(total * 0.85) end
  return total
end

function refine.CollNetDirect(s, g, collective, protocol, total)
  if protocol ~= "Simple" then return 0 end
  if collective == "all_reduce" then
    if g.channels == 0 then return 0 end
    local factor = F(s.ppn / g.channels)
    factor = F(factor - (factor - 1) / 2)
    total = F(total / factor)
    return s.cc >= 90 and F(total * 0.85) or total
  end
  if s.v >= 2700 then
    return F(s.ppn * min(g.bw_intra, 0.9 * g.bw_inter))
  end
  local is_able = s.collnet.gathers and s.ppn <= (s.collnet.heads or 0)
  local is_off = s.nodes > 1 and not is_able
  if is_off then return 0 end
  local weight = (s.ppn - 1) / 7
  return F(F(s.ppn * g.bw_intra) * (0.85 * weight + 0.95 * (1 - weight)))
end

function refine.CollNetChain(_, _, _, protocol, total)
  return protocol == "Simple" and total or 0
end

function refine.PAT(s, _, _, _, total) return F(total * (s.v < 2400 and 0.85 or 0.75)) end

function refine.NVLS(_, _, _, _, total) return total end
refine.NVLSTree = refine.NVLS

-- Steps of the ring: what the algorithm bandwidth is derived from.
function bandwidth.steps(s, collective)
  if collective == "all_reduce" then return 2 * (s.ranks - 1) end
  local is_gather = collective == "all_gather" or collective == "reduce_scatter"
  if is_gather then return s.ranks - 1 end
  return s.ranks
end

-- Bus bandwidth to algorithm bandwidth; nil: not applied.
local function ratio_of(s, collective, algorithm)
  local v = s.v
  local by_steps = s.ranks / bandwidth.steps(s, collective)
  if algorithm == "Ring" then return by_steps end
  local is_gather = collective == "all_gather" or collective == "reduce_scatter"
  if is_gather and v >= 2300 then return nil end
  if is_gather and v >= 2000 and algorithm == "CollNetDirect" then return nil end
  if algorithm == "NVLS" or algorithm == "NVLSTree" then
    if v >= 2800 then return by_steps end
    if v >= 1900 then return 5 / 6 end
    if algorithm == "NVLSTree" then return 0.7 * s.nodes / (2 * (s.nodes - 1)) end
    return v >= 1803 and 5 / 6 or 0.75
  end
  return 0.5
end

-- From 2.27: gathering through the network's switches needs a plugin that can.
local function is_network_gather_off(s, collective, algorithm)
  local is_gather = collective == "all_gather" or collective == "reduce_scatter"
  local is_switch = algorithm == "NVLS" or algorithm == "CollNetDirect"
  if not (s.v >= 2700 and s.nodes > 1 and is_gather and is_switch) then return false end
  return not (s.collnet.supported and s.collnet.gathers
    and s.max_local_ranks <= (s.collnet.heads or 0))
end

--- The algorithm bandwidth of a cell in GB/s, before cells are switched off; the second
--- value is the bus bandwidth of all channels that it was derived from. nil: skipped (0/0).
---@return number? algorithm_bandwidth
---@return number? total
function bandwidth.cell(s, collective, algorithm, protocol)
  local g = s.graph_of[algorithm]
  local is_nvls = algorithm == "NVLS" or algorithm == "NVLSTree"
  if s.v >= 2800 and is_nvls and g.channels < 2 then return nil end
  local total = F(g.channels * channel_bandwidth(s, g, collective, algorithm))
  local refined = refine[algorithm](s, g, collective, protocol, total)
  if is_network_gather_off(s, collective, algorithm) then refined = 0 end
  local ratio = ratio_of(s, collective, algorithm)
  return ratio and F(max(refined, 0) * F(ratio)) or refined, total
end

return bandwidth
