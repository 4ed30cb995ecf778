--- The protocol sweep end to end on the CPU: what the seed's tables must have, and every
--- number of them computed again from the raw rows.
local csv = require("nclua.csv")
local files = require("nclua.files")
local luaunit = require("luaunit")
local manifest = require("nclua.manifest")
local process = require("nclua.process")
local scratch = require("scratch")
local sqlite = require("nclua.sqlite")
local stats = require("nclua.stats")

local NCLUA = assert(os.getenv("NCLUA"), "NCLUA must name the program under test")
local CYCLES, RANKS = 5, 3

local function command(root, ...)
  return { NCLUA, "scripts/protocol.lua", "--root", root, "--run-id", "r", "--ranks", RANKS,
    "--cycles", CYCLES, "--iterations", 2, "--smallest", "4", "--largest", "64", ... }
end

-- With the shell's NCCL_ALGO no call could be made: the chapter must remove it.
local function run(root, ...)
  local result = assert(process.run(command(root, ...),
    { env = { NCCL_ALGO = "NVLS" }, timeout_s = 120 }))
  return result, root .. "/logs/ch14_protocol/r"
end

TestProtocol = {}

local shared

function TestProtocol.test_00_runs()
  shared = scratch.folder()
  local result
  result, shared.dir = run(shared.path, "--channels", "2", "--algorithms", "Tree,Ring,NVLS")
  luaunit.assertEquals(result.exit_code, 0, result.stderr)
  shared.stdout = result.stdout
end

local function rows_of(name)
  return assert(csv.read(shared.dir .. "/" .. name))
end

-- The slowest rank of each cycle.
local function slowest(row)
  local times, count = {}, 0
  for _, raw in ipairs(rows_of("raw_measurements.csv")) do
    if raw.size_bytes == row.size_bytes and raw.algorithm == row.algorithm
      and raw.protocol == row.protocol and raw.channels == row.channels then
      local i = raw.cycle + 1
      times[i], count = math.max(times[i] or 0, raw.time_us), count + 1
    end
  end
  luaunit.assertEquals(count, CYCLES * RANKS)
  return times
end

function TestProtocol.test_summary()
  local wanted = "size_bytes,algorithm,protocol,channels,availability,samples,"
    .. "median_time_us,"
  local text = assert(files.read(shared.dir .. "/summary.csv"))
  luaunit.assertEquals(text:sub(1, #wanted), wanted)
  local rows = rows_of("summary.csv")
  luaunit.assertEquals(#rows, 5 * (1 + 3 * 3 * 2))
  local counts = {}
  for _, row in ipairs(rows) do
    counts[row.availability] = (counts[row.availability] or 0) + 1
    if row.availability == "available" then
      local times = slowest(row)
      luaunit.assertEquals(row.samples, CYCLES)
      luaunit.assertAlmostEquals(row.median_time_us, stats.median(times), 1e-9)
      luaunit.assertAlmostEquals(row.max_time_us, stats.max(times), 1e-9)
      luaunit.assertTrue(row.low_us <= row.median_time_us)
      luaunit.assertTrue(row.correct)
    else
      luaunit.assertEquals({ row.algorithm, row.samples }, { "NVLS", 0 })
      luaunit.assertNil(row.median_time_us)
    end
  end
  luaunit.assertEquals(counts, { available = 5 * 13, unavailable = 5 * 6 })
end

function TestProtocol.test_of_one_cell_the_librarys_channels_come_last()
  local last = {}
  for _, row in ipairs(rows_of("summary.csv")) do
    last[row.size_bytes .. row.algorithm .. row.protocol] = row.channels
  end
  for _, channels in pairs(last) do luaunit.assertEquals(channels, 0) end
end

function TestProtocol.test_winners()
  local medians = {}
  for _, row in ipairs(rows_of("summary.csv")) do
    local of_size = medians[row.size_bytes] or {}
    medians[row.size_bytes] = of_size
    local name = row.algorithm .. "/" .. row.protocol .. "/" .. row.channels
    of_size[name] = row.median_time_us
  end
  local rows = rows_of("winners.csv")
  luaunit.assertEquals(#rows, 5)
  for _, row in ipairs(rows) do
    local of_size, best = medians[row.size_bytes], math.huge
    for name, time in pairs(of_size) do
      if not name:find("^auto") then best = math.min(best, time) end
    end
    luaunit.assertAlmostEquals(row.best_time_us, best, 1e-9)
    luaunit.assertAlmostEquals(row.auto_time_us, of_size["auto/auto/0"], 1e-9)
    luaunit.assertAlmostEquals(row.auto_regret_percent,
      (row.auto_time_us / best - 1) * 100, 1e-6)
    luaunit.assertTrue(row.auto_time_ratio_low <= row.auto_time_ratio_high)
    local chosen = ("%s/%s/0"):format(row.auto_algorithm, row.auto_protocol)
    luaunit.assertAlmostEquals(row.selected_time_us, of_size[chosen], 1e-9)
    luaunit.assertTrue(row.selection_regret_percent >= 0)
    luaunit.assertStrContains(row.unavailable, "NVLS/LL NVLS/LL/2")
  end
end

function TestProtocol.test_report_and_manifest()
  luaunit.assertStrContains(shared.stdout, "## Who wins where\n\n```\n")
  luaunit.assertStrMatches(shared.stdout, ".*\nTree/%S+ +|[#+. ]+|\n.*")
  local values = assert(manifest.read(shared.dir))
  luaunit.assertEquals({ values.steering, values.dtype, values.seed },
    { "live", "FP32", "1" })
  luaunit.assertEquals(values.NCCL_DEBUG_SUBSYS, "INIT,ENV,GRAPH")
end

function TestProtocol.test_database()
  local db <close> = assert(sqlite.open(shared.dir .. "/results.db", { mode = "ro" }))
  luaunit.assertEquals(db:value([[select count(*) from measurement
    where section = 'sweep' and metric = 'time_us' and value is not null]]),
    5 * 13 * CYCLES * RANKS)
end

function TestProtocol.test_zz_removes()
  getmetatable(shared).__close()
end

-- What is not there must not end a sweep of worlds, and no pair is claimed.
function TestProtocol.test_alone()
  local folder <close> = scratch.folder()
  local result, dir = run(folder.path, "--alone", "--algorithms", "Ring,NVLS",
    "--protocols", "Simple,LL", "--largest", "8", "--channels", "2")
  luaunit.assertEquals(result.exit_code, 0, result.stderr)
  local rows = assert(csv.read(dir .. "/summary.csv"))
  local said = {}
  for _, row in ipairs(rows) do
    if row.size_bytes == 8 and row.channels == 0 then
      said[row.algorithm .. row.protocol] = row.availability
    end
  end
  luaunit.assertEquals(said, { autoauto = "available", RingLL = "available",
    RingSimple = "available", NVLSLL = "unavailable", NVLSSimple = "unavailable" })
  luaunit.assertStrContains(result.stdout, "every combination was measured in a world of")
  local _, commands = assert(manifest.read(dir))
  luaunit.assertStrMatches(table.concat(commands, "\n"),
    ".*NCCL_ALGO=Ring[^\n]*NCCL_MAX_NCHANNELS=2[^\n]*NCCL_PROTO=LL.*")
end

function TestProtocol.test_usage()
  local folder <close> = scratch.folder()
  local result = run(folder.path, "--algorithms", "Star")
  luaunit.assertEquals(result.exit_code, 1)
  luaunit.assertStrContains(result.stderr, "unknown algorithm 'Star'")
end
