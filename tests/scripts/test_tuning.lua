--- The tuning chapter end to end on the CPU, its model against logs of real NCCL, and an
--- override that must be called ignored when it is.
local csv = require("nclua.csv")
local files = require("nclua.files")
local luaunit = require("luaunit")
local manifest = require("nclua.manifest")
local model = require("tuning.model")
local nccl_log = require("nclua.parse.nccl_log")
local capture = require("nclua.capture")
local process = require("nclua.process")
local scratch = require("scratch")
local stats = require("nclua.stats")

local NCLUA = assert(os.getenv("NCLUA"), "NCLUA must name the program under test")
local CORPUS = "../shared/corpus/h200x2/"
local CYCLES, RANKS = 3, 4

local function run(root, env, ...)
  local result = assert(process.run({ NCLUA, "scripts/tuning.lua", "--root", root,
    "--run-id", "r", "--cycles", CYCLES, "--iterations", 2, "--smallest", "4K", "--largest",
    "32K", "--plugin-cycles", 5, "--skip-nsys", ... }, { env = env, timeout_s = 120 }))
  return result, root .. "/logs/ch16_tuning/r"
end

-- What each file must have at least, in this order, as the seed wrote it.
local COLUMNS = {
  ["auto_raw_measurements.csv"] = "experiment,replicate,cycle,size_bytes,time_us,"
    .. "algbw_GBs,busbw_GBs,wrong,in_place_time_us,in_place_busbw_GBs,in_place_wrong",
  ["plugin_raw_measurements.csv"] = "experiment,replicate,cycle,size_bytes,time_us,"
    .. "algbw_GBs,busbw_GBs,wrong,in_place_time_us,in_place_busbw_GBs,in_place_wrong",
  ["auto_summary.csv"] = "experiment,size_bytes,samples,median_time_us,p95_time_us,"
    .. "cycle_cv_percent,min_time_us,max_time_us,median_busbw_GBs",
  ["plugin_summary.csv"] = "experiment,size_bytes,samples,median_time_us,p95_time_us,"
    .. "cycle_cv_percent,min_time_us,max_time_us,median_busbw_GBs",
  ["model_table.csv"] = "algorithm,algorithm_id,protocol,protocol_id,base_latency_us,"
    .. "algorithm_bandwidth_GBs,available",
  ["model_candidates.csv"] = "size_bytes,algorithm,algorithm_id,protocol,protocol_id,"
    .. "base_latency_us,base_bandwidth_GBs,tree_log_size,tree_correction,"
    .. "effective_bandwidth_GBs,predicted_time_us",
  ["selection_vs_measured.csv"] = "size_bytes,auto_algorithm,auto_protocol,model_time_us,"
    .. "auto_measured_median_us,measured_best_algorithm,measured_best_protocol,"
    .. "measured_best_median_us,exact_selection_hit,practical_selection_hit_5pct,"
    .. "selection_regret_percent,selected_model_abs_error_percent",
  ["plugin_kernel_geometry.csv"] = "message_bytes,selected_algorithm,"
    .. "selected_algorithm_id,selected_protocol,selected_protocol_id,requested_channels,"
    .. "kernel_names,kernel_instances,grid_x_values,block_x_values,median_kernel_us,"
    .. "p95_kernel_us",
  ["plugin_witnesses.csv"] = "witness,says,agrees",
}

TestTuning = {}

local shared

function TestTuning.test_00_runs()
  shared = scratch.folder()
  local result
  result, shared.dir = run(shared.path, { NCCL_PROTO = "LL", TORCH_NCCL_TRACE = "1" },
    "--sweep-cycles", 2)
  luaunit.assertEquals(result.exit_code, 0, result.stderr)
  shared.stdout = result.stdout
end

local function rows_of(name)
  return assert(csv.read(shared.dir .. "/" .. name))
end

function TestTuning.test_columns()
  for name, columns in pairs(COLUMNS) do
    local first = assert(files.read(shared.dir .. "/" .. name)):match("^[^\n]*")
    luaunit.assertEquals((first .. ","):sub(1, #columns + 1), columns .. ",", name)
  end
end

-- Two replicates count together; percentiles are linear.
function TestTuning.test_auto_performance()
  local raw = rows_of("auto_raw_measurements.csv")
  luaunit.assertEquals(#raw, 4 * CYCLES * 2)
  for _, row in ipairs(rows_of("auto_summary.csv")) do
    local times = {}
    for _, one in ipairs(raw) do
      if one.size_bytes == row.size_bytes then times[#times + 1] = one.time_us end
      luaunit.assertEquals({ one.wrong, one.in_place_wrong }, { 0, 0 })
    end
    luaunit.assertEquals({ row.samples, #times }, { CYCLES * 2, CYCLES * 2 })
    luaunit.assertAlmostEquals(row.median_time_us, stats.median(times), 1e-9)
    luaunit.assertAlmostEquals(row.p95_time_us, stats.percentile(times, 0.95, "linear"),
      1e-9)
    luaunit.assertTrue(row.correct)
  end
end

local function rank_rows(experiment)
  local by_cycle = {}
  for rank = 0, RANKS - 1 do
    local path = ("raw/results/auto_r1/rank%d_auto.csv"):format(rank)
    for _, row in ipairs(rows_of(path)) do
      if row.size_bytes == experiment then
        by_cycle[row.cycle] = math.max(by_cycle[row.cycle] or 0, row.time_us)
      end
    end
  end
  return by_cycle
end

function TestTuning.test_a_row_is_the_slowest_ranks()
  for _, row in ipairs(rows_of("auto_raw_measurements.csv")) do
    if row.replicate == 1 then
      luaunit.assertEquals(row.time_us, rank_rows(row.size_bytes)[row.cycle])
    end
  end
end

function TestTuning.test_model()
  local by_size, table_rows = {}, {}
  for _, row in ipairs(rows_of("model_table.csv")) do
    table_rows[row.algorithm .. row.protocol] = row
  end
  luaunit.assertEquals(table_rows.TreeLL128.algorithm_id, 0)
  luaunit.assertEquals(table_rows.RingSimple.protocol_id, 2)
  for _, row in ipairs(rows_of("model_candidates.csv")) do
    local cell = table_rows[row.algorithm .. row.protocol]
    luaunit.assertAlmostEquals(row.predicted_time_us, cell.base_latency_us
      + row.size_bytes / (1000 * cell.algorithm_bandwidth_GBs), 1e-9)
    luaunit.assertTrue(math.abs(row.exact_cost_us - row.predicted_time_us)
      <= math.max(0.15, 0.005 * row.exact_cost_us, row.rounding_us))
    by_size[row.size_bytes] = (by_size[row.size_bytes] or 0) + row.logged_selected
  end
  luaunit.assertEquals(by_size, { [4096] = 1, [8192] = 1, [16384] = 1, [32768] = 1 })
end

function TestTuning.test_comparison()
  local rows = rows_of("selection_vs_measured.csv")
  luaunit.assertEquals(#rows, 4)
  for _, row in ipairs(rows) do
    luaunit.assertAlmostEquals(row.selection_regret_percent,
      (row.auto_measured_median_us / row.measured_best_median_us - 1) * 100, 1e-6)
    luaunit.assertEquals(row.practical_selection_hit_5pct,
      row.selection_regret_percent < 5 and 1 or 0)
  end
end

function TestTuning.test_override_took_effect()
  luaunit.assertStrContains(shared.stdout, "Tree/Simple/2 at 32 KiB: **took effect**")
  local answers = {}
  for _, row in ipairs(rows_of("plugin_witnesses.csv")) do answers[row.witness] = row end
  luaunit.assertEquals(answers["the library's log: selection"].says,
    "Tree/Simple, 2 channels")
  luaunit.assertTrue(answers["the plugin's own call log"].agrees)
  luaunit.assertEquals(answers["the kernels"].says, "gridX 2")
  luaunit.assertEquals(answers["the communicator"].says, "Tree/Simple, 2 channels")
  local kernels = rows_of("plugin_kernel_geometry.csv")[1]
  luaunit.assertEquals({ kernels.grid_x_values, kernels.kernel_instances,
    kernels.profile_tool }, { 2, RANKS * 5, "nclua" })
  local experiments = {}
  for _, row in ipairs(rows_of("plugin_summary.csv")) do
    experiments[row.experiment] = row.samples
  end
  luaunit.assertEquals(experiments, { auto_32K = 5, plugin_tree_simple_ch2 = 5 })
end

function TestTuning.test_manifest()
  local values, commands = assert(manifest.read(shared.dir))
  luaunit.assertEquals({ values.experiment, values.auto_replicates, values.dtype },
    { "ch16_tuning", "2", "FP32" })
  luaunit.assertStrContains(values.critical_path_summary, "P95 (linear)")
  local text = table.concat(commands, "\n")
  luaunit.assertStrContains(text, "-u NCCL_PROTO -u TORCH_NCCL_TRACE")
  luaunit.assertStrContains(text, "NCLUA_TUNER_FORCE=all_reduce:Tree/Simple/2:0-")
end

-- A sweep that was made before serves, too.
function TestTuning.test_other_sweep()
  local folder <close> = scratch.folder()
  local root = folder.path
  local swept = assert(process.run({ NCLUA, "scripts/protocol.lua", "--root", root,
    "--run-id", "s", "--cycles", 1, "--iterations", 1, "--smallest", "4K", "--largest",
    "8K" }, { timeout_s = 60 }))
  luaunit.assertEquals(swept.exit_code, 0, swept.stderr)
  local result, dir = run(root, {}, "--sweep", root .. "/logs/ch14_protocol/s",
    "--sections", "selection")
  luaunit.assertEquals(result.exit_code, 0, result.stderr)
  luaunit.assertEquals(#assert(csv.read(dir .. "/selection_vs_measured.csv")), 2)
  luaunit.assertStrContains(result.stdout, "Sizes that the sweep does not have: 2")
end

-- { what is asked, of which environment, what it is ignored for }
local IGNORED = {
  { { "--override", "NVLS/Simple" }, {},
    "NVLS/Simple is not available to this communicator" },
  { { "--override-from", "1M" }, {}, "32768 bytes are outside the range of the override" },
  { { "--keep-env", "NCCL_ALGO" }, { NCCL_ALGO = "Ring" },
    "the environment decides before a tuner: NCCL_ALGO=Ring" },
}

function TestTuning.test_an_override_that_is_ignored_fails_the_run()
  for _, case in ipairs(IGNORED) do
    local folder <close> = scratch.folder()
    local result, dir = run(folder.path, case[2], "--sections", "plugin,witness",
      table.unpack(case[1]))
    luaunit.assertEquals(result.exit_code, 1, case[3])
    luaunit.assertStrContains(result.stderr,
      "tuning: the override was ignored because " .. case[3] .. "; evidence: " .. dir)
    luaunit.assertTrue(files.exists(dir .. "/manifest.txt"), "the evidence is complete")
    luaunit.assertStrContains(result.stdout, "**ignored because " .. case[3])
  end
end

local function sizes(last)
  local list = {}
  for i = 0, 28 do list[i + 1] = 4 << i end
  luaunit.assertEquals(list[#list], last)
  return list
end

-- A log of NCCL 2.28.3 on two H200s: its printed table gives every selection.
function TestTuning.test_model_of_a_printed_table()
  local text = files.read(CORPUS .. "nccl-2.28.3-tuning.log")
  if not text then luaunit.skip(CORPUS .. " is not there") end
  local result = { log = nccl_log.parse(text), observed = {}, lost = 0 }
  local rows, checked = model.recompute(result, capture.choices(result, {}), sizes(1 << 30),
    { backend = "cuda", capability = 90, ranks = 2, nodes = 1 })
  luaunit.assertEquals(#rows, 29 * 6)
  luaunit.assertEquals({ checked.sizes, checked.ties, checked.exact }, { 29, 0, 0 })
end

-- "SPY func=4 bytes=4 ... : 21 costs" as rows of our plugin's call log.
local function observed(text)
  local list = {}
  for bytes, costs in text:gmatch("SPY func=4 bytes=(%d+)[^:\n]*:([^\n]*)") do
    local row, i = { collective = "all_reduce", bytes = math.tointeger(bytes) }, 0
    local cells = {}
    for cost in costs:gmatch("%S+") do cells[#cells + 1] = tonumber(cost) end
    for _, a in ipairs({ "tree", "ring", "collnetdirect", "collnetchain", "nvls",
      "nvlstree", "pat" }) do
      for _, p in ipairs({ "ll", "ll128", "simple" }) do
        i = i + 1
        row[("%s/%s_us"):format(a, p)] = cells[i]
      end
    end
    if #cells == 21 then list[#list + 1] = row end
  end
  return list
end

-- NCCL's own costs, to the float: from its graph lines alone.
function TestTuning.test_model_of_exact_costs()
  local text = files.read(CORPUS .. "spy_sys_all_reduce.log")
  if not text then luaunit.skip(CORPUS .. " is not there") end
  local result = { log = nccl_log.parse(text), observed = observed(text), lost = 0 }
  luaunit.assertTrue(#result.observed >= 29)
  local facts = { backend = "cuda", capability = 90, ranks = 2, nodes = 1 }
  local choices = capture.choices(result, {})
  local list = {}
  for _, bytes in ipairs(sizes(1 << 30)) do
    if choices[bytes] then list[#list + 1] = bytes end
  end
  local _, checked = model.recompute(result, choices, list, facts)
  luaunit.assertEquals({ checked.exact, checked.graph, checked.ties }, { #list, #list, 0 })
  luaunit.assertTrue(#list >= 25, #list)
  result.observed[1]["ring/ll_us"] = result.observed[1]["ring/ll_us"] * 1.0001
  luaunit.assertErrorMsgContains("Ring/LL: ", model.recompute, result, choices,
    { result.observed[1].bytes }, facts)
end

function TestTuning.test_zz_removes()
  getmetatable(shared).__close()
end
