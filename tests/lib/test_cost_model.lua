--- The cost model: worked values for systems whose logs are public, and NCCL's own tables
--- from two H200s where the captures are at hand.
local cost_model = require("nclua.cost_model")
local lfs = require("lfs")
local luaunit = require("luaunit")

local CAPTURES = "../shared/corpus/h200x2/"

local function graph(pattern, channels, bandwidth, type_intra, type_inter, is_same)
  return {
    pattern = pattern, channels = channels, bw_intra = bandwidth, bw_inter = bandwidth,
    type_intra = type_intra, type_inter = type_inter, same_channels = is_same,
  }
end

local TWO_H200 = {
  version = "2.28.3", ranks = 2, nodes = 1, cc = 90,
  graphs = {
    ring = graph(4, 12, 30, "NVL", "PIX", true),
    tree = graph(1, 12, 60, "NVL", "PIX", false),
  },
}
local TWO_5090 = { -- as two nodes over sockets
  version = "2.29.7", ranks = 2, nodes = 2, cc = 120,
  graphs = {
    ring = graph(4, 2, 1.2, "LOC", "PHB", true),
    tree = graph(3, 2, 2.4, "LOC", "PHB", true),
  },
}
local H100_24 = {
  version = "2.22.3", ranks = 24, nodes = 3, cc = 90, coll_channels = 16,
  graphs = {
    ring = graph(4, 8, 24, "NVL", "PIX", false),
    tree = graph(3, 8, 24, "NVL", "PIX", false),
  },
}

-- System, collective, algorithm, protocol, latency µs, algorithm bandwidth GB/s (1 digit).
local CELLS = {
  { TWO_H200, "all_reduce", "Tree", "LL", 8.0, 61.1 },
  { TWO_H200, "all_reduce", "Tree", "LL128", 16.5, 180.6 },
  { TWO_H200, "all_reduce", "Tree", "Simple", 16.4, 232.2 },
  { TWO_H200, "all_reduce", "Ring", "LL", 7.8, 141.0 },
  { TWO_H200, "all_reduce", "Ring", "LL128", 17.8, 331.2 },
  { TWO_H200, "all_reduce", "Ring", "Simple", 15.2, 360.0 },
  { TWO_H200, "all_gather", "Ring", "LL128", 15.9, 662.4 },
  { TWO_H200, "broadcast", "Ring", "LL", 7.2, 141.0 },
  { TWO_H200, "all_reduce", "CollNetDirect", "Simple", 39.2, 0.0 },
  { TWO_H200, "all_reduce", "CollNetChain", "Simple", 35.6, 0.0 },
  { TWO_H200, "broadcast", "Tree", "LL", 0.0, 0.0 },
  { TWO_5090, "broadcast", "Ring", "LL", 9.3, 1.2 },
  { TWO_5090, "broadcast", "Ring", "Simple", 22.4, 2.4 },
  { TWO_5090, "all_gather", "Ring", "LL128", 22.5, 0.0 },
  { TWO_5090, "all_gather", "PAT", "Simple", 17.6, 3.6 },
  { TWO_5090, "all_reduce", "Tree", "Simple", 36.4, 1.9 },
}

TestCostModel = {}

function TestCostModel.test_cells()
  for _, case in ipairs(CELLS) do
    local system, collective, algorithm, protocol, latency, bandwidth = table.unpack(case)
    local model = assert(cost_model.model(system))
    local cell = model.cells[collective][algorithm][protocol]
    local what = ("%s %s/%s"):format(collective, algorithm, protocol)
    luaunit.assertEquals(("%.1f"):format(cell.latency_us), ("%.1f"):format(latency), what)
    luaunit.assertEquals(("%.1f"):format(cell.bandwidth_gbps), ("%.1f"):format(bandwidth),
      what)
  end
end

function TestCostModel.test_times_of_three_nodes_in_every_printed_digit()
  local model = assert(cost_model.model(H100_24))
  local tree = cost_model.time(model, "all_reduce", "Tree", "LL", 4)
  local ring = cost_model.time(model, "all_reduce", "Ring", "Simple", 8589934592)
  luaunit.assertEquals(("%.6f"):format(tree), "25.200462")
  luaunit.assertEquals(("%.6f"):format(ring), "86069.968750")
end

-- Bytes, algorithm, protocol, channels of two H200s' all_reduce.
local CHOICES = {
  { 4, "Ring", "LL", 1 }, { 8 << 10, "Ring", "LL", 1 }, { 16 << 10, "Ring", "LL", 2 },
  { 128 << 10, "Ring", "LL", 16 }, { 256 << 10, "Ring", "LL", 22 },
  { 1 << 20, "Ring", "LL", 24 }, { 2 << 20, "Ring", "Simple", 24 },
  { 1 << 30, "Ring", "Simple", 24 },
}

function TestCostModel.test_choices()
  local model = assert(cost_model.model(TWO_H200))
  for _, case in ipairs(CHOICES) do
    local bytes, algorithm, protocol, channels = table.unpack(case)
    local choice = assert(cost_model.select(model, "all_reduce", bytes))
    luaunit.assertEquals(
      { choice.algorithm, choice.protocol, choice.channels },
      { algorithm, protocol, channels }, ("%d bytes"):format(bytes))
  end
end

function TestCostModel.test_user_lists()
  local copy = { proto = "^ll;allgather:simple" }
  for key, value in pairs(TWO_H200) do copy[key] = value end
  local model = assert(cost_model.model(copy))
  luaunit.assertEquals(model.cells.all_reduce.Ring.LL.bandwidth_gbps, 0)
  luaunit.assertTrue(model.cells.all_reduce.Ring.LL128.bandwidth_gbps > 0)
  luaunit.assertEquals(model.cells.all_gather.Ring.LL128.bandwidth_gbps, 0)
  copy.proto = "fast"
  local none, message, code = cost_model.model(copy)
  luaunit.assertNil(none)
  luaunit.assertEquals(message, 'NCCL_PROTO: unknown name "fast" in "fast"')
  luaunit.assertEquals(code, "EINVAL")
end

function TestCostModel.test_versions()
  local copy = {}
  for key, value in pairs(TWO_H200) do copy[key] = value end
  copy.version = "2.31.1"
  luaunit.assertStrContains(assert(cost_model.model(copy)).note, "newer than 2.30.7")
  copy.version = "2.6.4"
  local none, message, code = cost_model.model(copy)
  luaunit.assertNil(none)
  luaunit.assertStrContains(message, "older than 2.7")
  luaunit.assertEquals(code, "ENOTSUP")
end

local FUNCTIONS = cost_model.names.COLLECTIVES -- in enum order, from 0

-- One observed table: function, bytes, operations, then algorithm × protocol costs.
local function check_costs(model, line)
  local func, bytes, ops, costs = line:match("SPY func=(%d+) bytes=(%d+) ops=(%d+).-: (.*)")
  if not func then return 0 end
  local got = cost_model.costs(model, FUNCTIONS[tonumber(func) + 1], math.tointeger(bytes),
    { ops = math.tointeger(ops) })
  local i = 0
  for word in costs:gmatch("%S+") do
    local want = tonumber(word)
    local algorithm = cost_model.names.ALGORITHMS[i // 3 + 1]
    local protocol = cost_model.names.PROTOCOLS[i % 3 + 1]
    luaunit.assertAlmostEquals(got[algorithm][protocol], want, 1e-5 * math.abs(want),
      ("%s/%s %s"):format(algorithm, protocol, line))
    i = i + 1
  end
  luaunit.assertEquals(i, 21, line)
  return 1
end

local function check_choice(model, line)
  local func, bytes, algorithm, protocol, high =
    line:match("(%a+): (%d+) Bytes %-> Algo (%S+) proto (%S+) channel{Lo..Hi}={0%.%.(%d+)}")
  if not func then return 0 end
  local choice = assert(cost_model.select(model, cost_model.names.collective(func),
    math.tointeger(bytes)))
  luaunit.assertEquals(
    { choice.algorithm, choice.protocol, choice.channels - 1 },
    { cost_model.names.algorithm(algorithm), cost_model.names.protocol(protocol),
      math.tointeger(high) }, line)
  return 1
end

function TestCostModel.test_observed_tables_of_two_h200()
  if not lfs.attributes(CAPTURES) then luaunit.skip("no captures at " .. CAPTURES) end
  for _, library in ipairs({ "sys", "torch" }) do
    for _, collective in ipairs(cost_model.names.COLLECTIVES) do
      local model = assert(cost_model.model(TWO_H200))
      local tables, choices = 0, 0
      for line in io.lines(("%sspy_%s_%s.log"):format(CAPTURES, library, collective)) do
        tables = tables + check_costs(model, line)
        choices = choices + check_choice(model, line)
      end
      luaunit.assertTrue(tables > 100 and choices > 100, collective)
    end
  end
end
