--- perf end to end: its text as others read it, right and wrong data for every collective,
--- what each row says, and runs that are cut short.
local cjson = require("cjson")
local children = require("children")
local csv = require("nclua.csv")
local cuda = require("nclua.cuda")
local files = require("nclua.files")
local kernels = require("kernels")
local luaunit = require("luaunit")
local manifest = require("nclua.manifest")
local parser = require("nclua.parse.nccl_tests")
local process = require("nclua.process")
local scratch = require("scratch")
local sqlite = require("nclua.sqlite")

local NCLUA = assert(os.getenv("NCLUA"), "NCLUA must name the program under test")
local BACKEND = cuda.backend()

local function command(root, ...)
  return { NCLUA, "scripts/perf.lua", "--root", root, "--run-id", "r", "-n", 5, ... }
end

local function run(root, ...)
  local result = assert(process.run(command(root, ...), { timeout_s = 120 }))
  return result, root .. "/logs/perf/r"
end

-- With a fault that a chunk of Lua puts into perf's modules first.
local function run_with(fault, root, ...)
  local argv = command(root, ...)
  table.insert(argv, 2, "-e")
  table.insert(argv, 3, fault)
  return assert(process.run(argv, { timeout_s = 120 })), root .. "/logs/perf/r"
end

local function succeed(result)
  luaunit.assertEquals(result.exit_code, 0, result.stderr)
end

local function table_of(text)
  local parsed = parser.parse(text)
  luaunit.assertEquals(parsed.warnings, {})
  return parsed.runs
end

TestPerf = {}

function TestPerf.test_the_layout_of_nccl_tests()
  local folder <close> = scratch.folder()
  local result = run(folder.path, "-b", 8, "-e", "1M", "-f", 2, "-g", 2, "--layout",
    "nccl-tests")
  succeed(result)
  local runs = table_of(result.stdout)
  luaunit.assertEquals(#runs, 1)
  local one = runs[1]
  luaunit.assertEquals({ one.collective, one.ranks, one.out_of_bounds, one.status,
    one.complete }, { "all_reduce", 2, 0, "OK", true })
  luaunit.assertEquals({ one.config.min_bytes, one.config.max_bytes, one.config.iters,
    one.config.warmup_iters, one.config.gpus }, { 8, 1 << 20, 5, 1, 2 })
  luaunit.assertEquals(#one.rows, 18)
  local fields = {} -- by position, as old scripts do it
  for line in result.stdout:gmatch("[^\n]+") do
    if not line:find("^#") then
      local words = {}
      for word in line:gmatch("%S+") do words[#words + 1] = word end
      luaunit.assertEquals(#words, 13, line)
      fields[#fields + 1] = words
    end
  end
  luaunit.assertEquals(#fields, 18)
  for i, row in ipairs(one.rows) do
    local words = fields[i]
    luaunit.assertEquals(row.size_bytes, 4 << i)
    luaunit.assertEquals({ words[1], words[2], words[3], words[4], words[5] },
      { tostring(4 << i), tostring(1 << i), "float", "sum", "-1" })
    luaunit.assertEquals({ tonumber(words[6]), tonumber(words[10]) },
      { row.out_of_place.time_us, row.in_place.time_us })
    luaunit.assertTrue(row.in_place.time_us > 0)
    luaunit.assertEquals({ words[9], words[13] }, { "0", "0" })
    local out = row.out_of_place
    luaunit.assertAlmostEquals(out.algbw_gbps, row.size_bytes / 1000 / out.time_us,
      0.02 * out.algbw_gbps + 0.01)
    luaunit.assertAlmostEquals(out.busbw_gbps, out.algbw_gbps, 0.011) -- of two ranks
  end
end

-- nccl-tests' columns, to the character; numbers stand to the right of them.
function TestPerf.test_columns_are_where_they_were()
  local folder <close> = scratch.folder()
  local result = run(folder.path, "-b", 64, "-e", 64, "-g", 2, "--layout", "nccl-tests")
  local lines = {}
  for line in result.stdout:gmatch("([^\n]*)\n") do lines[#lines + 1] = line end
  local at
  for i, line in ipairs(lines) do
    if line:find("^#       size") then at = i end
  end
  luaunit.assertEquals(lines[at], "#       size         count      type   redop    root"
    .. "     time   algbw   busbw  #wrong     time   algbw   busbw  #wrong ")
  luaunit.assertEquals(lines[at + 1], "#        (B)    (elements)                          "
    .. "     (us)  (GB/s)  (GB/s)             (us)  (GB/s)  (GB/s)         ")
  luaunit.assertStrMatches(lines[at + 2],
    "          64            16     float     sum      %-1"
      .. " [ %d.]+   0%.%d%d    0%.%d%d       0 [ %d.]+   0%.%d%d    0%.%d%d       0")
  luaunit.assertEquals(#lines[at + 2], #lines[at] - 1)
end

local COLLECTIVES = {
  -- in place, rooted, type, operator
  all_reduce = { true, false, "bfloat16", "sum" },
  all_gather = { true, false, "int8", "none" },
  reduce_scatter = { true, false, "half", "avg" },
  broadcast = { true, true, "f8e4m3", "none" },
  reduce = { true, true, "int64", "prod" },
  all_to_all = { false, false, "uint8", "none" },
  gather = { true, true, "double", "none" },
  scatter = { true, true, "uint32", "none" },
  sendrecv = { false, false, "float", "sum" },
  hypercube = { true, false, "half", nil },
}

function TestPerf.test_every_collective()
  for name, wanted in pairs(COLLECTIVES) do
    local folder <close> = scratch.folder()
    local op = wanted[4] ~= "none" and wanted[4] or "sum"
    local result = run(folder.path, "--collective", name, "-g", 4, "-b", 20, "-e", 20000,
      "-f", 31, "-c", 3, "-d", wanted[3], "-o", op, "-r", 2, "--layout", "nccl-tests")
    succeed(result)
    local rows = table_of(result.stdout)[1].rows
    luaunit.assertEquals(#rows, 3, name)
    for _, row in ipairs(rows) do
      luaunit.assertEquals({ row.type, row.redop, row.root },
        { wanted[3], wanted[4], wanted[2] and 2 or -1 }, name)
      luaunit.assertEquals(row.out_of_place.wrong, 0, name)
      luaunit.assertEquals(row.in_place.wrong, wanted[1] and 0 or nil, name)
    end
  end
end

function TestPerf.test_types_and_operators()
  local folder <close> = scratch.folder()
  local result = run(folder.path, "-g", 3, "-b", 3000, "-e", 3000, "-n", 2, "-d", "all",
    "-o", "all", "--layout", "nccl-tests")
  succeed(result)
  local rows = table_of(result.stdout)[1].rows
  luaunit.assertEquals(#rows, 12 * 6)
  for _, row in ipairs(rows) do luaunit.assertEquals(row.in_place.wrong, 0, row.type) end
  luaunit.assertEquals({ rows[72].type, rows[72].redop }, { "f8e5m2", "mulsum" })
end

-- One element of one rank comes out wrong.
local FLIP = [[
local data = require("perf.data")
local new = data.new
function data.new(fields)
  local one = new(fields)
  local count_wrong = one.count_wrong
  function one:count_wrong(slot, ...)
    if self.rank == 1 and slot.recv.count >= 100 then slot.recv:set(100, 7) end
    return count_wrong(self, slot, ...)
  end
  return one
end]]

-- One rank sends what another should.
local IMPOSTOR = [[
local data = require("perf.data")
local new = data.new
function data.new(fields)
  local one = new(fields)
  local fill = one.fill
  function one:fill(...)
    local rank = self.rank
    if rank == 1 then self.rank = 0 end
    fill(self, ...)
    self.rank = rank
  end
  return one
end]]

function TestPerf.test_one_wrong_element_is_seen()
  for name in pairs(COLLECTIVES) do
    if name ~= "reduce" and name ~= "gather" then -- rank 1 gets nothing there
      local folder <close> = scratch.folder()
      local result, dir = run_with(FLIP, folder.path, "--collective", name, "-g", 2, "-b",
        "4K", "-e", "4K", "--layout", "nccl-tests")
      luaunit.assertEquals(result.exit_code, 1, name)
      luaunit.assertStrContains(result.stderr, "contracts failed")
      luaunit.assertStrContains(result.stderr, "element 100 is 7.0, not ")
      local one = table_of(result.stdout)[1]
      luaunit.assertTrue(one.out_of_bounds >= 1, name)
      luaunit.assertEquals(one.status, "FAILED")
      luaunit.assertTrue(one.rows[1].out_of_place.wrong >= 1)
      luaunit.assertFalse(files.exists(dir .. "/manifest.txt"))
    end
  end
end

function TestPerf.test_what_a_rank_should_not_have_sent_is_seen()
  for name in pairs(COLLECTIVES) do
    local folder <close> = scratch.folder()
    local result = run_with(IMPOSTOR, folder.path, "--collective", name, "-g", 2, "-b",
      "4K", "-e", "4K", "-r", 1, "--layout", "nccl-tests")
    luaunit.assertEquals(result.exit_code, 1, name)
    luaunit.assertEquals(table_of(result.stdout)[1].status, "FAILED", name)
  end
end

function TestPerf.test_files()
  local folder <close> = scratch.folder()
  local table_csv, table_json = folder.path .. "/t.csv", folder.path .. "/t.json"
  local result, dir = run(folder.path, "-b", "1K", "-e", "4K", "-f", 2, "-g", 2, "-n", 30,
    "--csv", table_csv, "--json", table_json, "--pairs")
  succeed(result)
  luaunit.assertStrContains(result.stdout, "\n# rows with wrong data: 0\n")
  luaunit.assertStrContains(result.stdout, "Half a round trip of 1024 bytes")
  local rows = assert(csv.read(dir .. "/results.csv"))
  luaunit.assertEquals(#rows, 6)
  for i, row in ipairs(rows) do
    luaunit.assertEquals(row.size_bytes, 1024 << ((i - 1) // 2))
    luaunit.assertEquals(row.place, i % 2 == 1 and "out" or "in")
    luaunit.assertTrue(row.throughput_us > 0 and row.host_us > 0 and row.device_us > 0)
    luaunit.assertTrue(row.device_low_us <= row.device_us)
    luaunit.assertTrue(row.device_us <= row.device_high_us)
    luaunit.assertEquals({ row.latency_us, row.device_p99_us, row.wrong, row.iterations },
      { nil, nil, 0, 30 })
    luaunit.assertTrue(row.algorithm == "Ring" or row.algorithm == "Tree")
    luaunit.assertEquals(row.known_from, BACKEND == "cpu" and "cpu backend" or "log")
    luaunit.assertTrue(row.channels >= 1 and row.predicted_us > 0)
    luaunit.assertEquals(row.predicted_from, "tuner")
    luaunit.assertAlmostEquals(row.off_percent,
      (row.throughput_us / row.predicted_us - 1) * 100, 1e-6)
    luaunit.assertTrue(row.regret_percent >= 0)
    luaunit.assertEquals(row.held_us > 0, kernels.are_there())
  end
  local live = assert(csv.read(table_csv))
  luaunit.assertEquals(#live, 6)
  luaunit.assertEquals(live[6].throughput_us, rows[6].throughput_us)
  local count = 0
  for line in io.lines(table_json) do
    count = count + 1
    local one = cjson.decode(line)
    luaunit.assertEquals(one.size_bytes, rows[count].size_bytes)
    luaunit.assertAlmostEquals(one.host_us, rows[count].host_us, 1e-9)
  end
  luaunit.assertEquals(count, 6)
  luaunit.assertEquals(#assert(csv.read(dir .. "/raw/results/perf/rank1_iterations.csv")),
    6 * 30)
  local db <close> = assert(sqlite.open(dir .. "/results.db", { mode = "ro" }))
  luaunit.assertEquals(db:value([[select count(*) from measurement where section = 'perf'
    and metric = 'throughput_us' and correct = 1]]), 12)
  luaunit.assertEquals(db:value([[select count(*) from measurement where
    section = 'iterations' and metric = 'device_us' and correct = 1]]), 360)
  luaunit.assertEquals(assert(manifest.read(dir)).backend, BACKEND)
end

function TestPerf.test_what_nobody_says_is_not_known()
  local folder <close> = scratch.folder()
  local result, dir = run(folder.path, "-b", 64, "-e", 64, "-g", 2, "--collective",
    "all_to_all")
  succeed(result)
  local row = assert(csv.read(dir .. "/results.csv"))[1]
  luaunit.assertEquals({ row.algorithm, row.known_from, row.predicted_us }, {})
  luaunit.assertStrMatches(result.stdout, ".*\n +64 +8 out .* %? +%? +%? +%? r%d.*")
end

function TestPerf.test_regret_against_an_earlier_run()
  local folder <close> = scratch.folder()
  local size = { "-b", "1K", "-e", "1K", "-g", 2, "--witness", "none" }
  local _, dir = run(folder.path, table.unpack(size))
  local rows, columns = assert(csv.read(dir .. "/results.csv"))
  for _, row in ipairs(rows) do row.throughput_us = row.throughput_us / 1000 end
  assert(csv.write(dir .. "/results.csv", columns, rows))
  local argv = command(folder.path, table.unpack(size))
  table.move({ "--run-id=second", "--against", dir }, 1, 3, #argv + 1, argv)
  for i, word in ipairs(argv) do
    if word == "--run-id" then
      table.remove(argv, i)
      table.remove(argv, i)
    end
  end
  succeed(assert(process.run(argv, { timeout_s = 60 })))
  local again = assert(csv.read(folder.path .. "/logs/perf/second/results.csv"))
  local best = math.min(rows[1].throughput_us, rows[2].throughput_us)
  luaunit.assertEquals(again[1].best_us, best)
  luaunit.assertTrue(again[1].regret_percent > 100)
end

function TestPerf.test_latency_is_not_throughput()
  local folder <close> = scratch.folder()
  local cases = {
    { "latency", "-z", 3 }, { "latency", "-z", 1 }, { "throughput", "-z", 3, "-m", 2 },
    { "throughput", "-G", 2 }, { "throughput", "-m", 4 },
  }
  for i, case in ipairs(cases) do
    local root = folder.path .. "/" .. i
    local result, dir = run(root, "-b", "1K", "-e", "1K", "-g", 2, "--witness", "none",
      table.unpack(case, 2))
    succeed(result)
    luaunit.assertStrContains(result.stdout, "# time_us is " .. case[1])
    local row = assert(csv.read(dir .. "/results.csv"))[1]
    luaunit.assertNotNil(row[case[1] .. "_us"])
    luaunit.assertNil(row[case[1] == "latency" and "throughput_us" or "latency_us"])
  end
end

function TestPerf.test_until_stable()
  local folder <close> = scratch.folder()
  local result, dir = run(folder.path, "-b", "1K", "-e", "1K", "-g", 2, "--stable", 0.001,
    "--max-passes", 7, "--witness", "none", "-N", 2)
  succeed(result)
  local rows = assert(csv.read(dir .. "/results.csv"))
  luaunit.assertEquals(#rows, 4)
  luaunit.assertEquals({ rows[1].passes, rows[1].stop }, { 7, "limit of 7 passes" })
  luaunit.assertTrue(rows[1].low_us <= rows[1].throughput_us)
  luaunit.assertEquals(rows[3].run_cycle, 1)
end

-- Ranks that are never seen to be done would look like a hang.
function TestPerf.test_a_hang_is_explained()
  local folder <close> = scratch.folder()
  local result, dir = run_with([[
    local sequence = require("perf.sequence")
    local new, count = sequence.new, 0
    function sequence.new(spec)
      local one = new(spec)
      count = count + 1
      if spec.operation.comm.rank == 1 and count == 6 then -- it leaves out an operation
        function one.time() return 1, 1 end
      end
      return one
    end]], folder.path, "-b", 8, "-e", "1K", "-f", 2, "-g", 2, "-T", 1, "--witness", "none",
    "--layout", "nccl-tests")
  luaunit.assertEquals(result.exit_code, 1)
  luaunit.assertStrContains(result.stderr, "no rank got on for 1 s")
  luaunit.assertStrContains(result.stderr, "rank 1 is")
  luaunit.assertStrMatches(result.stderr:match("([^\n]*)\n$"),
    "perf: .*; evidence: " .. dir)
  luaunit.assertNotNil(result.stdout:find("\n +8 +2 +float"), "finished rows are there")
end

local LONG = { "-b", 8, "-e", "64K", "-f", 2, "-N", 400, "-g", 2, "--witness", "none",
  "-c", 0 }

-- Started, and stopped by a signal when some sizes are measured.
local function stopped(folder, signal)
  local running <close> = assert(process.spawn(command(folder, table.unpack(LONG))))
  local dir, pids, text = folder .. "/logs/perf/r", {}
  repeat
    luaunit.assertNil(running:wait(0.02))
    pids = #pids < 2 and children(running.pid) or pids
    text = files.read(dir .. "/raw/journal.jsonl") or ""
  until select(2, text:gsub('"done"', "")) > 20
  assert(process.run({ "kill", "-" .. signal, tostring(running.pid) }))
  return assert(running:wait(10)), dir, pids
end

local function ended(pids)
  luaunit.assertEquals(#pids, 2)
  for _, pid in ipairs(pids) do
    for _ = 1, 500 do
      if not files.exists("/proc/" .. pid) then break end
      process.run({ "sleep", "0.01" })
    end
    luaunit.assertFalse(files.exists("/proc/" .. pid))
  end
end

function TestPerf.test_ctrl_c_keeps_what_there_is()
  local folder <close> = scratch.folder()
  local result, dir, pids = stopped(folder.path, "INT")
  luaunit.assertEquals(result.exit_code, 130, result.stderr)
  luaunit.assertStrMatches(result.stderr:match("([^\n]*)\n$"),
    "perf: interrupted after %d+ of 5600 sizes; go on with: nclua perf %-%-resume .*")
  ended(pids)
  local rows = assert(csv.read(dir .. "/results.csv"))
  luaunit.assertTrue(#rows >= 40 and #rows % 2 == 0)
  luaunit.assertStrContains(files.read(dir .. "/summary.md"), "interrupted after")
  luaunit.assertTrue(files.exists(dir .. "/results.db"))
  luaunit.assertFalse(files.exists(dir .. "/manifest.txt"))
end

-- The journal's arguments are shortened, so that the rest takes no time.
local function shorten(dir)
  local path = dir .. "/raw/journal.jsonl"
  local text = assert(files.read(path))
  assert(files.write(path, (text:gsub('"400"', '"2"', 1))))
end

function TestPerf.test_a_killed_run_can_be_resumed()
  local folder <close> = scratch.folder()
  local result, dir, pids = stopped(folder.path, "KILL")
  luaunit.assertEquals(result.signal, "SIGKILL")
  ended(pids)
  luaunit.assertFalse(files.exists(dir .. "/results.csv"))
  shorten(dir)
  local before = files.read(dir .. "/raw/journal.jsonl")
  local last = before:find('{"done":[^\n]*\n[^\n]*$')
  local again = assert(process.run({ NCLUA, "scripts/perf.lua", "--resume", dir },
    { timeout_s = 60 }))
  succeed(again)
  local after = files.read(dir .. "/raw/journal.jsonl")
  luaunit.assertEquals(after:sub(1, last), before:sub(1, last), "nothing is measured twice")
  local rows = assert(csv.read(dir .. "/results.csv"))
  luaunit.assertEquals(#rows, 14 * 2 * 2)
  luaunit.assertTrue(files.exists(dir .. "/manifest.txt"))
  local third = assert(process.run({ NCLUA, "scripts/perf.lua", "--resume", dir }))
  luaunit.assertEquals(third.exit_code, 1)
  luaunit.assertStrContains(third.stderr, "is complete")
end

function TestPerf.test_usage()
  local folder <close> = scratch.folder()
  local cases = {
    { "is more than -e", "-b", "1M", "-e", "1K" }, { "-b 0 with -f", "-b", 0, "-f", 2 },
    { "unknown 'float16'", "-d", "float16" }, { "unknown 'plus'", "-o", "plus" },
    { "expected 0 to 1", "-g", 2, "-r", 2 }, { "which a graph", "-z", 1, "-G", 1 },
    { "unknown 'all_to_some'", "--collective", "all_to_some" },
    { "expected at least 1", "-n", 0 },
  }
  for _, case in ipairs(cases) do
    local result = run(folder.path, table.unpack(case, 2))
    luaunit.assertEquals(result.exit_code, 2, case[1])
    luaunit.assertStrContains(result.stderr, case[1])
  end
  luaunit.assertFalse(files.exists(folder.path .. "/logs"))
  local result = assert(process.run({ NCLUA, "perf", "--help" }))
  succeed(result)
  for _, part in ipairs({ "-b <minbytes>", "--stepfactor", "(default: 32M)" }) do
    luaunit.assertStrContains(result.stdout, part)
  end
end

function TestPerf.test_what_cannot_be_measured_is_said()
  local folder <close> = scratch.folder()
  local result = run(folder.path, "--collective", "hypercube,broadcast", "-g", 3, "-b", 64,
    "-e", 64, "--layout", "nccl-tests")
  succeed(result)
  luaunit.assertStrContains(result.stdout,
    "# nclua: hypercube: 3 ranks are not a power of 2, skipping")
  local other <close> = scratch.folder()
  result = run(other.path, "--collective", "hypercube", "-g", 3)
  luaunit.assertEquals(result.exit_code, 1)
  luaunit.assertStrContains(result.stderr, "nothing is left to measure")
end

function TestPerf.test_fewer_devices_than_ranks()
  local folder <close> = scratch.folder()
  local argv = command(folder.path, "-b", 64, "-e", 64, "-g", 3, "--layout", "nccl-tests")
  local env = { NCLUA_CPU_DEVICES = 2, NCLUA_CUDA_DEVICES = 2 }
  local result = assert(process.run(argv, { env = env, timeout_s = 60 }))
  succeed(result)
  luaunit.assertStrContains(result.stdout, "there are 2 devices: measured with 2")
  luaunit.assertEquals(table_of(result.stdout)[1].ranks, 2)
  table.move({ "-r", 2 }, 1, 2, #argv + 1, argv)
  argv[6] = "second"
  result = assert(process.run(argv, { env = env, timeout_s = 60 }))
  luaunit.assertEquals(result.exit_code, 1)
  luaunit.assertStrContains(result.stderr, "expected 0 to 1, or all, got '2'")
end

function TestPerf.test_shared_devices_are_no_measurement()
  local folder <close> = scratch.folder()
  local argv = command(folder.path, "-b", 64, "-e", 64, "-g", 3, "--oversubscribe")
  local result = assert(process.run(argv, { timeout_s = 60,
    env = { NCLUA_CPU_DEVICES = 2, NCLUA_CUDA_DEVICES = 2 } }))
  succeed(result)
  luaunit.assertStrContains(result.stdout, "ALL TIMES ARE INVALID")
  local dir = folder.path .. "/logs/perf/r"
  for _, row in ipairs(assert(csv.read(dir .. "/results.csv"))) do
    luaunit.assertEquals({ row.times_valid, row.wrong }, { false, 0 })
  end
  local _, marks = files.read(dir .. "/summary.md"):gsub("The times are invalid", "")
  luaunit.assertEquals(marks, 3)
end

function TestPerf.test_in_the_world_of_a_launcher()
  local folder <close> = scratch.folder()
  local function start(index)
    return assert(process.spawn(command(folder.path, "-b", 64, "-e", 256, "-f", 2, "-g", 2),
      { timeout_s = 60, env = { RANK = index, WORLD_SIZE = 2, LOCAL_WORLD_SIZE = 2,
        MASTER_PORT = "perf" .. folder.path } }))
  end
  local both = { start(0), start(1) }
  for i, one in ipairs(both) do both[i] = assert(one:wait()) end
  for _, result in ipairs(both) do succeed(result) end
  luaunit.assertStrContains(both[1].stdout, "# rows with wrong data: 0")
  luaunit.assertEquals(both[2].stdout, "")
end
