--- The numbers of NCCL's tuning model by version. Source: src/graph/tuning.cc of each tag,
--- restated. Versions are minor * 100 + patch: 2.28.3 is 2803.
local constants = {}

--- What is modelled, compared with NCCL's own code cell by cell. Before OWN_GRAPHS,
--- algorithms share graphs and the rules are others: nclua.cost_model.older.
constants.OLDEST = 700
constants.OWN_GRAPHS = 1801
constants.NEWEST = 3007

--- "2.28.3", "2.28.3+cuda13.0" or 22803 → 2803.
---@param version string|integer
---@return integer? code
---@return string? message
function constants.version_code(version)
  if math.type(version) == "integer" then
    return version >= 20000 and version % 10000 or version
  end
  local minor, patch = tostring(version):match("^2%.(%d+)%.?(%d*)")
  if not minor then return nil, ("not an NCCL version: %q"):format(tostring(version)) end
  return math.tointeger(minor) * 100 + (math.tointeger(tonumber(patch)) or 0)
end

-- Rows of "from version → value", newest first: the first row that is not newer than v.
local function since(rows, v)
  for _, row in ipairs(rows) do
    if v >= row[1] then return row[2] end
  end
end

local ZERO = { 0, 0, 0 }

-- LL, LL128, Simple, in µs.
local BASE_LATENCY = {
  Tree = { { 2300, { 6.8, 14, 8.4 } }, { 0, { 6.8, 14, 0 } } },
  Ring = { { 0, { 6.6, 14, 8.4 } } },
  CollNetDirect = { { 1900, ZERO }, { 0, { 6.8, 14, 0 } } },
  CollNetChain = { { 1900, ZERO }, { 0, { 6.8, 14, 0 } } },
  NVLS = { { 1900, ZERO }, { 0, { 0, 0, 23 } } },
  NVLSTree = { { 1900, ZERO }, { 0, { 0, 0, 23 } } },
  PAT = { { 0, { 8, 8, 8 } } },
}

-- For each hardware row NVLINK, PCI, NET: LL, LL128, Simple, in µs.
local TREE_FAST = { { 0.6, 1.25, 4 }, { 1, 1.9, 4 }, { 5, 8.5, 14 } }
local TREE_1803 = { { 0.6, 1.25, 4 }, { 1, 1.9, 6 }, { 5, 8.5, 14 } }
local TREE_SLOW = { { 0.6, 1.25, 28 }, { 1, 1.9, 28 }, { 5, 8.5, 28 } }

local function simple_only(nvlink, pci, net)
  return { { 0, 0, nvlink }, { 0, 0, pci }, { 0, 0, net } }
end

local HARDWARE_LATENCY = {
  Tree = {
    { 2300, TREE_FAST }, { 1900, TREE_SLOW }, { 1803, TREE_1803 }, { 0, TREE_SLOW },
  },
  Ring = { { 0, { { 0.6, 1.9, 3.4 }, { 1, 2.5, 5.7 }, { 2.7, 4, 14 } } } },
  CollNetDirect = { { 1900, simple_only(3.7, 3.7, 31) }, { 0, simple_only(8, 8, 10.7) } },
  CollNetChain = { { 1900, simple_only(2.8, 2.8, 30) }, { 0, simple_only(4.75, 8, 14) } },
  NVLS = {
    { 2100, simple_only(25, 0, 18) }, { 1900, simple_only(23, 0, 18) },
    { 0, simple_only(0, 0, 18) },
  },
  NVLSTree = {
    { 2809, simple_only(25, 0, 20.9) }, { 2100, simple_only(25, 0, 14) },
    { 1900, simple_only(23, 0, 14) }, { 0, simple_only(0, 0, 19) },
  },
  PAT = { { 2800, simple_only(4, 4, 14) }, { 0, simple_only(0, 0, 0) } },
}

-- Bandwidth ceilings in GB/s for 1 node, 2 nodes, more; one row an architecture: Volta,
-- Ampere, Hopper, Blackwell.
local VOLTA_20, FLAT_367 = { 20, 20, 20 }, { 36.7, 36.7, 36.7 }
local TREE_VOLTA, TREE_AMPERE = { 26.5, 18.5, 10 }, { 24, 23.6, 17.8 }

local CEILINGS = {
  ll = {
    { 2100, { { 39, 39, 20.4 }, { 87.7, 22.5, 19 }, { 141, 45, 35 }, { 282, 90, 70 } } },
    { 0, { { 39, 39, 20.4 }, { 87.7, 22.5, 19 }, { 87.7, 22.5, 19 } } },
  },
  ring_ll128 = {
    { 2907, { VOLTA_20, VOLTA_20, FLAT_367, { 40, 40, 40 } } },
    { 2900, { VOLTA_20, VOLTA_20, FLAT_367, { 34.5, 34.6, 34.5 } } },
    { 2807, { VOLTA_20, VOLTA_20, FLAT_367, { 73.4, 34.6, 73.4 } } },
    { 0, { VOLTA_20, VOLTA_20, FLAT_367, { 73.4, 73.4, 73.4 } } },
  },
  tree_ll128 = {
    { 2800, { VOLTA_20, VOLTA_20, { 36.7, 36.7, 29 }, { 55.6, 31.67, 20 } } },
    { 1803, { VOLTA_20, VOLTA_20, { 36.7, 36.7, 29 }, { 73.4, 73.4, 58 } } },
    { 0, { VOLTA_20, VOLTA_20, FLAT_367 } },
  },
  tree = {
    { 2800, { TREE_VOLTA, TREE_AMPERE, { 38.7, 41.4, 36 }, { 70, 42.8, 24 } } },
    { 1803, { TREE_VOLTA, TREE_AMPERE, { 38.7, 41.4, 36 }, { 77.4, 82.8, 72 } } },
    { 0, { TREE_VOLTA, TREE_AMPERE, { 38.7, 41.4, 33 } } },
  },
  nvls_tree = {
    { 3000, { TREE_VOLTA, TREE_AMPERE, { 0, 57.7, 45.5 }, { 0, 96, 80 } } },
    { 2809, { TREE_VOLTA, TREE_AMPERE, { 0, 57.7, 45.5 }, { 0, 96, 43.8 } } },
    { 0, { TREE_VOLTA, TREE_AMPERE, { 0, 57.7, 45.5 }, { 0, 96, 43.1 } } },
  },
}

--- From 2.28: the share of NVLink SHARP's bandwidth that is reached, by architecture.
constants.NVLS_EFFICIENCY = { 0, 0, 0.85, 0.74 }

-- Path types, nearest first; their numbers changed, so comparisons go by version.
local PATHS = {
  { 2705, "LOC NVL NVB C2C PIX PXB P2C PXN PHB SYS NET DIS" },
  { 2700, "LOC NVL NVB C2C PIX PXB PXN P2C PHB SYS NET DIS" },
  { 2600, "LOC NVL NVB C2C PIX PXB PXN PHB SYS NET DIS" },
  { 0, "LOC NVL NVB PIX PXB PXN PHB SYS NET DIS" },
}

--- What the tree's bandwidth is multiplied with, by log2(bytes / 64), 64 B … 512 MiB; the
--- 24th value exists from 2.29.
constants.TREE_CORRECTION = {
  LL = { 1, 1, 1, 1, 0.9, 0.8, 0.7, 0.7, 0.7, 0.7, 0.6, 0.5, 0.4, 0.4, 0.5, 0.6, 0.7, 0.8,
    0.9, 1, 1, 1, 1, 1 },
  LL128 = { 1, 1, 1, 1, 1, 0.9, 0.8, 0.8, 0.8, 0.7, 0.6, 0.6, 0.6, 0.6, 0.6, 0.6, 0.8, 0.9,
    0.9, 0.9, 0.9, 1, 1, 1 },
  Simple = { 0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.8, 0.7, 0.6, 0.6, 0.5, 0.5, 0.5, 0.5, 0.6,
    0.7, 0.8, 0.7, 0.7, 0.8, 0.9, 0.9, 0.9 },
}

-- How many operations of a group cost one latency of a non-ring algorithm.
local PIPELINE_DIVISORS = { { 3000, 8 }, { 2300, 10 }, { 2200, 16 }, { 1300, 9 }, { 0, 8 } }

-- Least traffic that is worth a channel, in bytes.
local MIN_TRAFFIC = { { 2900, 32768 }, { 2300, 16384 }, { 0, 512 } }

local PROTOCOL_AT = { LL = 1, LL128 = 2, Simple = 3 }

---@return number µs
function constants.base_latency(v, algorithm, protocol)
  return since(BASE_LATENCY[algorithm], v)[PROTOCOL_AT[protocol]]
end

---@param hardware "NVLINK"|"PCI"|"NET"
---@return number µs
function constants.hardware_latency(v, algorithm, protocol, hardware)
  local row = hardware == "NVLINK" and 1 or hardware == "PCI" and 2 or 3
  return since(HARDWARE_LATENCY[algorithm], v)[row][PROTOCOL_AT[protocol]]
end

---@param name "ll"|"ring_ll128"|"tree_ll128"|"tree"|"nvls_tree"
---@param row integer architecture, 1 Volta … 4 Blackwell
---@param scale integer 1: one node, 2: two, 3: more
---@return number GB/s
function constants.ceiling(v, name, row, scale)
  local rows = since(CEILINGS[name], v)
  return (rows[row] or rows[#rows])[scale]
end

--- The number of a path type in that version; a larger number is a longer path.
---@return integer?
function constants.path_rank(v, name)
  local rank = 0
  for word in since(PATHS, v):gmatch("%u%w+") do
    if word == name then return rank end
    rank = rank + 1
  end
end

function constants.pipeline_divisor(v) return since(PIPELINE_DIVISORS, v) end

function constants.min_traffic(v) return since(MIN_TRAFFIC, v) end

function constants.max_channels(v) return v >= 2500 and 64 or 32 end

return constants
