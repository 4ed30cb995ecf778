--- The interview labs end to end, in a few cycles of small messages: every file and column,
--- and the statistics computed again from the raw rows.
local children = require("children")
local csv = require("nclua.csv")
local cuda = require("nclua.cuda")
local files = require("nclua.files")
local hash = require("nclua.hash")
local luaunit = require("luaunit")
local manifest = require("nclua.manifest")
local process = require("nclua.process")
local scratch = require("scratch")
local sqlite = require("nclua.sqlite")

local NCLUA = assert(os.getenv("NCLUA"), "NCLUA must name the program under test")
local BACKEND = cuda.backend()
local CYCLES = 4
local QUICK = { "--cycles", CYCLES, "--warmups", 1, "--largest", "64K", "--fragment-total",
  "160K", "--decode-collectives", 3, "--timeout", 60 }

local function command(root, ...)
  local argv = { NCLUA, "scripts/interview.lua", "--root", root, "--run-id", "r" }
  table.move(QUICK, 1, #QUICK, #argv + 1, argv)
  return table.move({ ... }, 1, select("#", ...), #argv + 1, argv)
end

-- What each file must have at least, in this order, as the seed wrote it.
local COLUMNS = {
  ["async_summary.csv"] = "world_size,size_bytes,cycles,median_host_enqueue_us,"
    .. "median_host_wait_us,median_gpu_dependency_us,p95_gpu_dependency_us,gpu_cv_percent,"
    .. "work_completed_after_return_rate,event_ready_after_wait_rate,correct",
  ["decomposition_summary.csv"] = "world_size,size_bytes,mode,cycles,median_duration_us,"
    .. "p95_duration_us,cv_percent,overhead_vs_allreduce_percent,correct",
  ["fragmentation_summary.csv"] = "world_size,total_bytes,fragment_count,fragment_bytes,"
    .. "cycles,median_duration_us,p95_duration_us,min_duration_us,max_duration_us,"
    .. "cv_percent,slowdown_vs_one_collective,median_per_collective_us,"
    .. "strictly_slower_than_one_in_all_cycles,correct",
  ["decode_summary.csv"] = "world_size,tokens,hidden_size,message_bytes,collectives,cycles,"
    .. "median_total_us,p95_total_us,min_total_us,max_total_us,cv_percent,"
    .. "median_per_collective_us,correct",
  ["nccl_tests_raw.csv"] = "cycle,size_bytes,time_us,algbw_GBs,busbw_GBs,wrong,"
    .. "inplace_time_us,inplace_algbw_GBs,inplace_busbw_GBs,inplace_wrong,world_size",
  ["nccl_tests_summary.csv"] = "world_size,size_bytes,cycles,median_time_us,p95_time_us,"
    .. "min_time_us,max_time_us,cv_percent,median_algbw_GBs,median_busbw_GBs,wrong_total",
  ["numeric_summary.csv"] = "scenario,cases,fp16_mismatch_count,fp16_nonfinite_count,"
    .. "fp32_mismatch_count,unique_fp16_results,correct_replication_and_fp32_reference",
  ["summary.csv"] = "section,world_size,case,metric,median,p95,cv_percent,samples,correct",
  ["raw/results/world4_full/rank3_async.csv"] = "world_size,size_bytes,cycle,"
    .. "host_enqueue_us,work_completed_after_return,host_wait_us,gpu_dependency_us,"
    .. "event_ready_after_wait,correct",
  ["raw/results/world4_full/rank3_decomposition.csv"] =
    "world_size,size_bytes,mode,cycle,duration_us",
  ["raw/results/world4_full/rank3_fragmentation.csv"] =
    "world_size,total_bytes,fragment_count,fragment_bytes,cycle,duration_us",
  ["raw/results/world4_full/rank3_decode.csv"] =
    "world_size,tokens,message_bytes,collectives,cycle,duration_us",
  ["raw/results/world4_full/rank3_numerics.csv"] = "rank,scenario,permutation,fp16_result,"
    .. "fp32_result,fp16_matches_real_sum,fp32_matches_real_sum",
  ["raw/results/world4_full/rank3_contracts.csv"] =
    "section,world_size,rank,case,cycle,check,correct",
  ["raw/results/world2_decode/rank1_decode.csv"] =
    "world_size,tokens,message_bytes,collectives,cycle,duration_us",
}

local OTHER_FILES = {
  "artifacts/nvidia_smi_query.txt", "artifacts/nvidia_smi_topo.txt",
  "artifacts/ibv_devinfo.txt", "raw/world4_full.stdout", "raw/world2_decode.stdout",
  "results.db", "manifest.txt", "summary.md",
}

-- The test's own statistics, written from the definitions.
local function sorted(values)
  local copy = table.move(values, 1, #values, 1, {})
  table.sort(copy)
  return copy
end

local function median(values)
  local v = sorted(values)
  local half = #v // 2
  return #v % 2 == 1 and v[half + 1] or (v[half] + v[half + 1]) / 2
end

local function p95(values)
  return sorted(values)[math.max(1, math.ceil(0.95 * #values))]
end

local function cv_percent(values)
  local sum, squares = 0, 0
  for _, x in ipairs(values) do sum = sum + x end
  local mean = sum / #values
  for _, x in ipairs(values) do squares = squares + (x - mean) ^ 2 end
  return math.sqrt(squares / #values) / mean * 100
end

-- The slowest rank's value in each cycle, for the raw rows that agree with `wanted`.
local function slowest(dir, world, ranks, section, field, wanted)
  local by_cycle, result = {}, {}
  for rank = 0, ranks - 1 do
    local path = ("%s/raw/results/%s/rank%d_%s.csv"):format(dir, world, rank, section)
    for _, row in ipairs(assert(csv.read(path))) do
      local agrees = true
      for key, value in pairs(wanted) do agrees = agrees and row[key] == value end
      if agrees then
        by_cycle[row.cycle] = math.max(by_cycle[row.cycle] or 0, row[field])
      end
    end
  end
  for cycle = 0, CYCLES - 1 do
    result[cycle + 1] = assert(by_cycle[cycle], "no such cycle")
  end
  return result
end

local function rows_of(dir, name)
  return assert(csv.read(dir .. "/" .. name))
end

local function near(got, wanted, what)
  luaunit.assertAlmostEquals(got, wanted, math.abs(wanted) * 1e-9 + 1e-9, what)
end

TestInterview = {}

-- One run serves the tests that only look.
local shared

function TestInterview.test_00_runs()
  shared = scratch.folder()
  local result = assert(process.run(command(shared.path), { timeout_s = 240 }))
  luaunit.assertEquals(result.exit_code, 0, result.stderr)
  shared.dir = shared.path .. "/logs/interview_details/r"
  shared.stdout = result.stdout
end

function TestInterview.test_files_and_columns()
  local dir = shared.dir
  for name, columns in pairs(COLUMNS) do
    local first = assert(files.read(dir .. "/" .. name)):match("^[^\n]*")
    luaunit.assertEquals((first .. ","):sub(1, #columns + 1), columns .. ",", name)
    luaunit.assertStrMatches(first, ".*,backend.*")
  end
  for _, name in ipairs(OTHER_FILES) do
    luaunit.assertTrue(files.exists(dir .. "/" .. name), name)
  end
  for _, name in ipairs(files.list(dir)) do
    luaunit.assertNil(name:find("%.part$"), name)
  end
end

function TestInterview.test_async_statistics()
  for _, row in ipairs(rows_of(shared.dir, "async_summary.csv")) do
    local function of(field)
      return slowest(shared.dir, "world4_full", 4, "async", field,
        { size_bytes = row.size_bytes })
    end
    local gpu = of("gpu_dependency_us")
    near(row.median_gpu_dependency_us, median(gpu))
    near(row.p95_gpu_dependency_us, p95(gpu))
    near(row.gpu_cv_percent, cv_percent(gpu))
    near(row.median_host_enqueue_us, median(of("host_enqueue_us")))
    near(row.median_host_wait_us, median(of("host_wait_us")))
    luaunit.assertTrue(row.correct)
    luaunit.assertEquals(row.cycles, CYCLES)
  end
end

function TestInterview.test_decomposition_statistics()
  local rows = rows_of(shared.dir, "decomposition_summary.csv")
  luaunit.assertEquals(#rows, 2)
  local function times(row, mode)
    return slowest(shared.dir, "world4_full", 4, "decomposition", "duration_us",
      { size_bytes = row.size_bytes, mode = mode })
  end
  for _, row in ipairs(rows) do
    local mine = times(row, row.mode)
    near(row.median_duration_us, median(mine))
    near(row.overhead_vs_allreduce_percent,
      (median(mine) / median(times(row, "direct")) - 1) * 100)
  end
end

function TestInterview.test_fragmentation_statistics()
  local rows = rows_of(shared.dir, "fragmentation_summary.csv")
  local function times(row)
    return slowest(shared.dir, "world4_full", 4, "fragmentation", "duration_us",
      { fragment_count = row.fragment_count })
  end
  local whole = sorted(times(rows[1]))
  luaunit.assertEquals(rows[1].fragment_count, 1)
  luaunit.assertTrue(rows[1].strictly_slower_than_one_in_all_cycles)
  for i, row in ipairs(rows) do
    local mine = sorted(times(row))
    luaunit.assertEquals(row.fragment_bytes * row.fragment_count, 160 * 1024)
    near(row.min_duration_us, mine[1])
    near(row.max_duration_us, mine[#mine])
    near(row.p95_duration_us, p95(mine))
    near(row.cv_percent, cv_percent(mine))
    near(row.slowdown_vs_one_collective, median(mine) / median(whole))
    near(row.median_per_collective_us, median(mine) / row.fragment_count)
    luaunit.assertEquals(row.strictly_slower_than_one_in_all_cycles,
      i == 1 or mine[1] > whole[#whole])
  end
end

function TestInterview.test_decode_statistics()
  local rows = rows_of(shared.dir, "decode_summary.csv")
  luaunit.assertEquals(#rows, 8)
  for _, row in ipairs(rows) do
    local world = row.world_size == 4 and "world4_full" or "world2_decode"
    local times = slowest(shared.dir, world, row.world_size, "decode", "duration_us",
      { tokens = row.tokens })
    luaunit.assertEquals({ row.hidden_size, row.collectives }, { 4096, 3 })
    luaunit.assertEquals(row.message_bytes, row.tokens * 8192)
    near(row.median_total_us, median(times))
    near(row.p95_total_us, p95(times))
    near(row.cv_percent, cv_percent(times))
    near(row.median_per_collective_us, median(times) / 3)
    luaunit.assertEquals(row.mode, "eager")
  end
end

function TestInterview.test_control_statistics()
  local raw = rows_of(shared.dir, "nccl_tests_raw.csv")
  luaunit.assertEquals(#raw, 2 * 8 * CYCLES)
  local rows = rows_of(shared.dir, "nccl_tests_summary.csv")
  luaunit.assertEquals(#rows, 8)
  for _, row in ipairs(rows) do
    local world = ("nccl_tests_g%d"):format(row.world_size)
    local times = slowest(shared.dir, world, row.world_size, "control", "time_us",
      { size_bytes = row.size_bytes })
    near(row.median_time_us, median(times))
    local bandwidths = {}
    for i, time_us in ipairs(times) do
      bandwidths[i] = row.size_bytes / time_us / 1000 * 2 * (row.world_size - 1)
        / row.world_size
    end
    near(row.median_busbw_GBs, median(bandwidths))
    luaunit.assertEquals({ row.wrong_total, row.source }, { 0, "nclua" })
  end
end

function TestInterview.test_numerics()
  local cases = { exact = 24, absorption = 12, cancellation = 12, overflow = 6 }
  for _, row in ipairs(rows_of(shared.dir, "numeric_summary.csv")) do
    luaunit.assertEquals(row.cases, cases[row.scenario], row.scenario)
    local seen, mismatches = {}, 0
    local path = "raw/results/world4_full/rank0_numerics.csv"
    for _, raw in ipairs(rows_of(shared.dir, path)) do
      if raw.scenario == row.scenario then
        luaunit.assertNil(seen[raw.permutation], "permutations are distinct")
        seen[raw.permutation] = true
        local sum = 0
        for value in raw.permutation:gmatch("[^,]+") do sum = sum + tonumber(value) end
        luaunit.assertEquals(raw.fp32_result, sum)
        luaunit.assertEquals(raw.fp16_matches_real_sum, raw.fp16_result == sum)
        if raw.fp16_result ~= sum then mismatches = mismatches + 1 end
      end
    end
    luaunit.assertEquals(row.fp16_mismatch_count, mismatches)
    luaunit.assertEquals(row.fp32_mismatch_count, 0)
    luaunit.assertEquals(mismatches > 0, row.scenario ~= "exact", row.scenario)
    luaunit.assertTrue(row.correct_replication_and_fp32_reference)
  end
end

function TestInterview.test_summary_unites_the_tables()
  local counts = {}
  for _, row in ipairs(rows_of(shared.dir, "summary.csv")) do
    counts[row.section] = (counts[row.section] or 0) + 1
    luaunit.assertTrue(row.correct, row.section .. " " .. row.case)
    luaunit.assertEquals(row.backend, BACKEND)
  end
  luaunit.assertEquals(counts, { async = 2, decomposition = 2, fragmentation = 6,
    decode = 8, nccl_tests_decode_sizes = 8, numerics = 4 })
  luaunit.assertEquals(shared.stdout,
    files.read(shared.dir .. "/summary.md") .. "run_dir=" .. shared.dir .. "\n")
  local parts = { "backend=" .. BACKEND, "## Evidence boundary", "contracts passed" }
  for _, part in ipairs(parts) do
    luaunit.assertStrContains(shared.stdout, part)
  end
end

function TestInterview.test_database()
  local db <close> = assert(sqlite.open(shared.dir .. "/results.db", { mode = "ro" }))
  local wanted = { async = 2 * 4 * 5, decomposition = 2 * 4, fragmentation = 6 * 4,
    decode = 4 * (4 + 2), control = 8 * 4 * (4 + 2) }
  for section, count in pairs(wanted) do
    luaunit.assertEquals(db:value("select count(*) from measurement where section = ?",
      section), count * CYCLES, section)
  end
  luaunit.assertEquals(db:value("select count(*) from measurement where correct = 0"), 0)
  local row = rows_of(shared.dir, "decode_summary.csv")[1]
  near(db:value([[select median(slowest) from (select max(value) as slowest from measurement
    where section = 'decode' and world_size = ? and case_name like ? group by cycle)]],
    row.world_size, ("tokens=%d;%%"):format(row.tokens)), row.median_total_us)
  for artifact in db:rows("select path, sha256 from artifact") do
    luaunit.assertEquals(hash.sha256_file(shared.dir .. "/" .. artifact.path),
      artifact.sha256)
  end
end

function TestInterview.test_manifest()
  local values, commands = assert(manifest.read(shared.dir))
  local wanted = {
    experiment = "interview_details", run_id = "r", backend = BACKEND, cycles = "4",
    warmups = "1", decode_collectives = "3", cpu_affinity = "auto", NCCL_DEBUG = "INFO",
    NCCL_DEBUG_SUBSYS = "INIT,GRAPH,COLL", nccl_source_commit = "unavailable",
    ["sha256.scripts/interview.lua"] = hash.sha256_file("scripts/interview.lua"),
    ["sha256.scripts/interview/decode.lua"] =
      hash.sha256_file("scripts/interview/decode.lua"),
  }
  for key, value in pairs(wanted) do luaunit.assertEquals(values[key], value, key) end
  for _, key in ipairs({ "timestamp_utc", "hostname", "device.0", "topology", "dtype",
    "nccl_version", "nccl_library", "critical_path_summary", "control" }) do
    luaunit.assertNotNil(values[key], key)
  end
  luaunit.assertEquals(#commands, 3 + 4)
  luaunit.assertStrContains(commands[4], "NCCL_DEBUG=INFO")
end

function TestInterview.test_zz_removes()
  getmetatable(shared).__close()
end

function TestInterview.test_decode_as_a_graph()
  local folder <close> = scratch.folder()
  local result = assert(process.run(command(folder.path, "--sections", "decode", "--graph",
    "--ranks", 2, "--warmups", 0), { timeout_s = 120 }))
  luaunit.assertEquals(result.exit_code, 0, result.stderr)
  local dir = folder.path .. "/logs/interview_details/r"
  local rows = rows_of(dir, "decode_summary.csv")
  luaunit.assertEquals(#rows, 8)
  for i, row in ipairs(rows) do
    luaunit.assertEquals(row.mode, i % 2 == 1 and "eager" or "graph") -- side by side
    luaunit.assertEquals(row.tokens, rows[(i - 1) // 2 * 2 + 1].tokens)
    luaunit.assertTrue(row.correct)
    near(row.median_total_us, median(slowest(dir, "world2_full", 2, "decode",
      "duration_us", { tokens = row.tokens, mode = row.mode })))
  end
  local named = 0
  for _, row in ipairs(rows_of(dir, "summary.csv")) do
    named = named + (row.case:find(";mode=graph$") and 1 or 0)
  end
  luaunit.assertEquals(named, 4)
end

function TestInterview.test_small_worlds_say_so()
  local folder <close> = scratch.folder()
  local result = assert(process.run(command(folder.path, "--sections", "decode"),
    { env = { NCLUA_CPU_DEVICES = 2, NCLUA_CUDA_DEVICES = 2 }, timeout_s = 120 }))
  luaunit.assertEquals(result.exit_code, 0, result.stderr)
  local note = "world4_full: 4 ranks were asked for, there are 2 devices: measured with 2"
  luaunit.assertStrContains(result.stdout, note)
  local dir = folder.path .. "/logs/interview_details/r"
  luaunit.assertStrContains(files.read(dir .. "/manifest.txt"), "note=" .. note)
  local rows = rows_of(dir, "decode_summary.csv")
  luaunit.assertEquals(#rows, 8)
  for _, row in ipairs(rows) do luaunit.assertEquals(row.world_size, 2) end
  luaunit.assertEquals(rows[8].requested_world_size, 4)
  luaunit.assertFalse(files.exists(dir .. "/async_summary.csv"))
end

function TestInterview.test_a_killed_rank_ends_the_run()
  local folder <close> = scratch.folder()
  local argv = command(folder.path, "--sections", "decode", "--cycles", 100000)
  local running <close> = assert(process.spawn(argv))
  local dir, pids = folder.path .. "/logs/interview_details/r"
  repeat -- until four ranks measure
    luaunit.assertNil(running:wait(0.05))
    pids = children(running.pid)
    local said = running:poll()
    luaunit.assertNil(said)
  until #pids == 4
  running:wait(0.5)
  assert(process.run({ "kill", "-9", pids[3] })) -- rank 2
  local result = assert(running:wait(5), "it must end within 5 s")
  luaunit.assertEquals(result.exit_code, 1)
  luaunit.assertStrMatches(result.stderr:match("([^\n]*)\n$"),
    "interview: world4_full failed: rank 2 died of SIGKILL: .*; evidence: " .. dir)
  luaunit.assertFalse(files.exists(dir .. "/manifest.txt"))
  for _, pid in ipairs(pids) do luaunit.assertFalse(files.exists("/proc/" .. pid)) end
  for _, name in ipairs(files.list(dir)) do
    luaunit.assertNil(name:find("%.part$"), name)
    if name:find("%.csv$") then
      luaunit.assertStrContains(name, "world4_full.incomplete/")
      luaunit.assertNotNil((csv.read(dir .. "/" .. name)), name)
    end
  end
end
