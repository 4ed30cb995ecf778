--- From graph lines to NCCL's own table: the model recomputed from our and public logs.
local cost_model = require("nclua.cost_model")
local from_log = require("nclua.cost_model.from_log")
local lfs = require("lfs")
local luaunit = require("luaunit")
local nccl_log = require("nclua.parse.nccl_log")

local FIXTURES, CORPUS = "tests/fixtures/nccl/", "../shared/corpus/"

local function read(path)
  local file <close> = assert(io.open(path, "rb"))
  return file:read("a")
end

local function model_of(path, options)
  local log = nccl_log.parse(read(path))
  return log, assert(cost_model.model(assert(from_log.system(log, options))))
end

-- Every printed cell, to the printed digit.
local function check_table(path, log, model)
  local cells = 0
  for collective, algorithms in pairs(log.communicators[1].tuning) do
    for algorithm, protocols in pairs(algorithms) do
      for protocol, want in pairs(protocols) do
        local got = model.cells[collective][algorithm][protocol]
        luaunit.assertEquals(("%.1f/%.1f"):format(got.latency_us, got.bandwidth_gbps),
          ("%.1f/%.1f"):format(want.latency_us, want.bandwidth_gbps),
          ("%s %s %s/%s"):format(path, collective, algorithm, protocol))
        cells = cells + 1
      end
    end
  end
  return cells
end

local function check_selections(path, log, model)
  for _, want in ipairs(log.selections) do
    local collective = want.collective or "all_reduce"
    local got = assert(cost_model.select(model, collective, want.bytes))
    local what = ("%s %s %d"):format(path, collective, want.bytes)
    luaunit.assertEquals(got.algorithm, want.algorithm, what)
    luaunit.assertEquals(got.protocol, want.protocol, what)
    if want.channels then luaunit.assertEquals(got.channels, want.channels, what) end
    local printed = want.time_us and ("%.6f"):format(want.time_us)
    if printed then luaunit.assertEquals(("%.6f"):format(got.time_us), printed, what) end
  end
  return #log.selections
end

TestFromLog = {}

function TestFromLog.test_fixtures()
  local log, model = model_of(FIXTURES .. "2.10-two-nodes.log", { cc = 80 })
  luaunit.assertEquals(check_table("2.10", log, model), 45)
  log, model = model_of(FIXTURES .. "2.22-numeric-selections.log",
    { device = "NVIDIA H100" })
  luaunit.assertEquals(check_table("2.22", log, model), 90)
  luaunit.assertEquals(check_selections("2.22", log, model), 14)
end

function TestFromLog.test_merge_over_ranks()
  local log = nccl_log.parse(read(FIXTURES .. "2.10-two-nodes.log"))
  local system = assert(from_log.system(log, { cc = 80 }))
  luaunit.assertEquals(system.graphs.ring, {
    pattern = 4, channels = 2, bw_intra = 24, bw_inter = 12, type_intra = "NVL",
    type_inter = "PXB", same_channels = true,
  })
  luaunit.assertEquals(system.graphs.tree.channels, 2)
  luaunit.assertEquals({ system.cpu_arch, system.cpu_vendor, system.nodes },
    { "x86", "amd", 2 })
end

function TestFromLog.test_what_is_missing()
  local log = nccl_log.parse(read(FIXTURES .. "2.10-two-nodes.log"))
  for _, case in ipairs({
    { log, {}, "the compute capability is not known: give cc" },
    { nccl_log.parse(""), { cc = 80 }, "the log tells of no communicator" },
    { nccl_log.parse(read(FIXTURES .. "2.4-rings.log")), { cc = 70 }, "not an NCCL" },
    { nccl_log.parse(read(FIXTURES .. "2.30-forms.log")), { cc = 70 }, "no graph lines" },
  }) do
    local none, message, code = from_log.system(case[1], case[2])
    luaunit.assertNil(none)
    luaunit.assertStrContains(message, case[3])
    luaunit.assertEquals(code, "EINVAL")
  end
end

function TestFromLog.test_capability()
  for name, cc in pairs({
    ["NVIDIA H100 80GB HBM3"] = 90, ["NVIDIA A100-SXM4-80GB"] = 80, ["NVIDIA B200"] = 100,
    ["Tesla V100-SXM2-16GB"] = 70, ["NVIDIA GeForce RTX 5090"] = 120, ["NVIDIA L40S"] = 89,
    ["NVIDIA GeForce RTX 3090"] = 86, ["NVIDIA GB200"] = 100, ["Tesla T4"] = 75,
    ["NVIDIA A10G"] = 86, ["NVIDIA GB300"] = 103,
  }) do
    luaunit.assertEquals(from_log.capability(name), cc, name)
  end
  luaunit.assertNil(from_log.capability("NVIDIA Graphics Device"))
end

-- What the logs do not say: compute capability, and what their cuts left out.
local PUBLIC = {
  { "s01-log-e2e-2xa100-2.27.7.log", { cc = 80 }, 105, 11 },
  { "s02-log-e2e-onelane-2.27.7.log", { cc = 80 }, 105, 11 },
  { "s03-log-e2e-2n4g-ib-2.26.6.log", { cc = 70, version = "2.26.6" }, 105, 25 },
  { "s04-log-e2e-3xa100-2.7.3.log", { cc = 80 }, 45, 0 },
  { "h200x2/nccl-2.28.3-tuning.log", { cc = 90 }, 105, 29 },
  { "h200x2/pretend-world_3_1.log", { cc = 90 }, 105, 12 },
  { "h200x2/pretend-world_4_1.log", { cc = 90 }, 105, 12 },
  { "h200x2/pretend-world_4_2.log", { cc = 90 }, 105, 12 },
  { "h200x2/pretend-world_8_2.log", { cc = 90 }, 105, 12 },
}
for _, library in ipairs({ "sys", "torch" }) do
  for _, name in ipairs({ "all_gather", "all_reduce", "broadcast", "reduce",
    "reduce_scatter" }) do
    local sizes = name:find("_[gs]") and 26 or 29
    table.insert(PUBLIC, { ("h200x2/spy_%s_%s.log"):format(library, name),
      { cc = 90, ranks = 2 }, 105, sizes })
  end
end

function TestFromLog.test_public_logs()
  if not lfs.attributes(CORPUS) then luaunit.skip("no public logs at " .. CORPUS) end
  for _, case in ipairs(PUBLIC) do
    local path, options, cells, selections = table.unpack(case)
    local log, model = model_of(CORPUS .. path, options)
    luaunit.assertEquals(check_table(path, log, model), cells, path)
    luaunit.assertEquals(check_selections(path, log, model), selections, path)
  end
end

local FUNCTIONS = cost_model.names.COLLECTIVES -- in enum order, from 0

local SPY = "^SPY func=(%d+) bytes=(%d+) ops=(%d+) na=7 np=3 reg=%d nch=%d : ([%d. e+-]+)$"

-- "SPY func=4 bytes=4 ops=1 ... : 16.8 -1 ...": NCCL's own cost table, as a plugin got it.
-- Several processes print at once: a line that does not hold exactly 21 costs is skipped.
local function check_costs(model, line)
  local func, bytes, ops, rest = line:match(SPY)
  local costs = {}
  for word in (rest or ""):gmatch("%S+") do costs[#costs + 1] = tonumber(word) end
  if #costs ~= 21 then return 0 end
  local got = cost_model.costs(model, FUNCTIONS[tonumber(func) + 1], math.tointeger(bytes),
    { ops = math.tointeger(ops) })
  for i, want in ipairs(costs) do
    local algorithm = cost_model.names.ALGORITHMS[(i - 1) // 3 + 1]
    local protocol = cost_model.names.PROTOCOLS[(i - 1) % 3 + 1]
    luaunit.assertAlmostEquals(got[algorithm][protocol], want, 1e-5 * math.abs(want),
      ("%s/%s %s"):format(algorithm, protocol, line))
  end
  return 1
end

function TestFromLog.test_costs_that_a_plugin_saw()
  if not lfs.attributes(CORPUS) then luaunit.skip("no public logs at " .. CORPUS) end
  for _, case in ipairs(PUBLIC) do
    local path, options = case[1], case[2]
    if path:find("pretend") or path:find("spy_") then
      local _, model = model_of(CORPUS .. path, options)
      local lines = 0
      for line in io.lines(CORPUS .. path) do lines = lines + check_costs(model, line) end
      luaunit.assertTrue(lines >= 12, path)
    end
  end
end

-- 32 RTX 3090 on 4 nodes, 2.12.12: no graph lines, but every printed time follows from a
-- ring of 7 GB/s over PCIe.
function TestFromLog.test_times_of_2_12()
  if not lfs.attributes(CORPUS) then luaunit.skip("no public logs at " .. CORPUS) end
  local path = CORPUS .. "s07-log-select-32x3090-2.12.12.log"
  local graph = {
    channels = 1, bw_intra = 7, bw_inter = 7, type_intra = "SYS", type_inter = "SYS",
    same_channels = true, pattern = 4,
  }
  local model = assert(cost_model.model({
    version = "2.12.12", ranks = 32, nodes = 4, cc = 86,
    graphs = { ring = graph, tree = graph },
  }))
  local log = nccl_log.parse(read(path))
  for _, want in ipairs(log.selections) do
    if want.algorithm == "Ring" then
      local got = cost_model.time(model, "all_reduce", "Ring", want.protocol, want.bytes)
      luaunit.assertAlmostEquals(got, want.time_us, 2e-5 * want.time_us, want.bytes)
    end
  end
end
