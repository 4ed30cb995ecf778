local cuda = require("nclua.cuda")
local luaunit = require("luaunit")
local nccl = require("nclua.nccl")
local process = require("nclua.process")
local scratch = require("scratch")
local sqlite = require("nclua.sqlite")
local trace = require("nclua.trace")

local NCLUA = os.getenv("NCLUA")

local function rows(file, sql)
  local db <close> = assert(sqlite.open(file, { mode = "ro" }))
  local list = {}
  for row in db:rows(sql) do list[#list + 1] = row end
  return list
end

local function one(file, sql)
  local row = rows(file, "SELECT (" .. sql .. ") AS v")[1]
  return row.v
end

local KERNELS = [[SELECT value AS name, k.* FROM CUPTI_ACTIVITY_KIND_KERNEL k
  JOIN StringIds ON id = shortName ORDER BY start]]

-- Runs a script of its own with a trace; returns the file.
local function run_traced(folder, script, options)
  local file = folder .. "/run.sqlite"
  local result = assert(process.run({ NCLUA, "--trace", file, "-e", script },
    options or { env = { NCLUA_BACKEND = "cpu" }, timeout_s = 60 }))
  luaunit.assertEquals(result.stderr, "")
  luaunit.assertEquals(result.exit_code, 0)
  return file
end

TestTrace = {}

function TestTrace.test_records_what_streams_do()
  local folder <close> = scratch.folder()
  local file = folder.path .. "/a.sqlite"
  assert(trace.start({ file = file }))
  luaunit.assertEquals(trace.file(), file)
  local x <close> = assert(cuda.buffer("f32", 1000))
  local stream <close> = assert(cuda.stream())
  cuda.range("outer", function()
    x:fill(1, stream):pattern({ start = 0, step = 1, modulus = 7 }, stream)
    stream:sync()
  end)
  luaunit.assertEquals(x:to_table(2, 1), { 1 })
  luaunit.assertEquals(assert(trace.stop()), file)
  luaunit.assertNil(trace.file())
  luaunit.assertNil((trace.stop()))
  x:fill(2) -- after the end: not in it

  local kernels = rows(file, KERNELS)
  luaunit.assertEquals(#kernels, 1)
  luaunit.assertEquals(kernels[1].name, "nclua_pattern")
  luaunit.assertTrue(kernels[1]["end"] > kernels[1].start)
  luaunit.assertEquals(one(file, "SELECT bytes FROM CUPTI_ACTIVITY_KIND_MEMSET"), 4000)
  luaunit.assertEquals(one(file, "SELECT count(*) FROM CUPTI_ACTIVITY_KIND_MEMCPY"), 1)
  -- Each was brought about by a call, before it, in this process.
  luaunit.assertEquals(one(file, [[SELECT count(*) FROM CUPTI_ACTIVITY_KIND_KERNEL k
    JOIN CUPTI_ACTIVITY_KIND_RUNTIME r USING (correlationId)
    WHERE r.start <= k.start AND r.globalTid >> 24 = k.globalPid >> 24]]), 1)
  local range = rows(file, "SELECT * FROM NVTX_EVENTS")[1]
  luaunit.assertEquals(range.text, "outer")
  luaunit.assertEquals(range.eventType, 59)
  luaunit.assertTrue(range.start < kernels[1].start and range["end"] > kernels[1]["end"])
end

function TestTrace.test_refuses()
  local folder <close> = scratch.folder()
  local thesis = folder.path .. "/thesis"
  local out = assert(io.open(thesis, "w"))
  out:write("forty pages")
  out:close()
  local _, message, code = trace.start({ file = thesis })
  luaunit.assertStrContains(message, "exists and is not a trace")
  luaunit.assertEquals(code, "EEXIST")
  luaunit.assertEquals(io.open(thesis):read("a"), "forty pages")
  luaunit.assertNil((trace.start({ file = folder.path .. "/no/such/folder" })))
  luaunit.assertErrorMsgContains("file", trace.start, {})
  luaunit.assertErrorMsgContains("'files'", trace.start, { file = "x", files = 1 })
  assert(trace.start({ file = folder.path .. "/b" }))
  _, message, code = trace.start({ file = folder.path .. "/c" })
  luaunit.assertStrContains(message, "running already")
  luaunit.assertEquals(code, "busy")
  assert(trace.stop())
  luaunit.assertErrorMsgContains("list of file names", trace.merge, "x", { {} })
  _, message = trace.merge(folder.path .. "/d", { thesis })
  luaunit.assertStrContains(message, "cannot add")
end

function TestTrace.test_one_range_a_collective_on_request()
  local folder <close> = scratch.folder()
  local file = folder.path .. "/a.sqlite"
  assert(trace.start({ file = file, collectives = true }))
  local comms = assert(nccl.init_all(1))
  local comm <close> = comms[1]
  local x <close> = assert(cuda.buffer("f16", 64))
  comm:all_reduce(x, x, "sum")
  cuda.synchronize()
  assert(trace.stop())
  luaunit.assertEquals(one(file, "SELECT text FROM NVTX_EVENTS"), "all_reduce 64 f16")
  comm:all_reduce(x, x, "sum")
  cuda.synchronize()
end

local RANKS = [[
  local cuda, ranks = require("nclua.cuda"), require("nclua.ranks")
  assert(ranks.run({ n = 2, timeout_s = 60, fn = function(rank)
    local comm <close> = rank:comm()
    local stream <close> = cuda.stream()
    local x <close> = cuda.buffer("f32", 4096)
    for _ = 1, 3 do comm:all_reduce(x, x, "sum", stream) end
    stream:sync()
    local graph <close> = assert(stream:capture(function()
      comm:all_reduce(x, x, "max", stream)
      comm:all_reduce(x, x, "max", stream)
    end))
    graph:launch(stream)
    stream:sync()
  end }))]]

function TestTrace.test_ranks_are_one_trace()
  local folder <close> = scratch.folder()
  local file = run_traced(folder.path, RANKS)
  local kernels = rows(file, KERNELS)
  luaunit.assertEquals(#kernels, 10)
  for _, k in ipairs(kernels) do
    luaunit.assertStrMatches(k.name, "ncclDevKernel_AllReduce_%a+_f32_%u+_%u+%d*")
    luaunit.assertTrue(k.gridX >= 1 and k.start > 0)
  end
  luaunit.assertEquals(one(file, [[SELECT count(*) FROM (SELECT DISTINCT globalPid, deviceId
    FROM CUPTI_ACTIVITY_KIND_KERNEL)]]), 2)
  luaunit.assertEquals(one(file, "SELECT count(*) FROM PROCESSES"), 3)
  -- A graph's kernels have its launch's number.
  luaunit.assertEquals(one(file, [[SELECT count(*) FROM CUPTI_ACTIVITY_KIND_KERNEL k
    JOIN CUPTI_ACTIVITY_KIND_RUNTIME r ON r.correlationId = k.correlationId
      AND r.globalTid >> 24 = k.globalPid >> 24
    JOIN StringIds s ON s.id = nameId WHERE value = 'cuGraphLaunch']]), 4)
  luaunit.assertEquals(one(file, "SELECT count(*) FROM NCLUA_LOST"), 0)
  local lfs = require("lfs")
  for name in lfs.dir(folder.path) do
    luaunit.assertTrue(name:sub(1, 1) == "." or name == "run.sqlite", name)
  end
end

-- What the tuner plugin forces is what the kernels show: Tree, two channels.
function TestTrace.test_a_forced_choice_shows()
  local folder <close> = scratch.folder()
  local tuner, message = require("nclua.plugins").file("tuner")
  luaunit.assertNotNil(tuner, message)
  local env = { NCLUA_BACKEND = "cpu", NCCL_MIN_NCHANNELS = "4", NCCL_TUNER_PLUGIN = tuner,
    NCLUA_TUNER_FORCE = "all_reduce:Tree/Simple/2" }
  local file = run_traced(folder.path, RANKS, { env = env, timeout_s = 60 })
  local kernels = rows(file, KERNELS)
  luaunit.assertEquals(#kernels, 10)
  for _, k in ipairs(kernels) do
    luaunit.assertStrContains(k.name, "_TREE_SIMPLE")
    luaunit.assertEquals(k.gridX, 2)
  end
end

function TestTrace.test_a_killed_rank_is_in_it()
  local folder <close> = scratch.folder()
  local file = folder.path .. "/run.sqlite"
  local script = [[
    local cuda, ranks = require("nclua.cuda"), require("nclua.ranks")
    ranks.run({ n = 1, timeout_s = 30, fn = function()
      local x <close> = cuda.buffer("f32", 4096)
      x:pattern({ start = 0, step = 1, modulus = 7 })
      cuda.synchronize()
      local stop = cuda.now_ns() + 400000000
      while cuda.now_ns() < stop do end
      require("nclua.process").run({ "sh", "-c", "kill -9 $PPID" })
    end })]]
  assert(process.run({ NCLUA, "--trace", file, "-e", script },
    { env = { NCLUA_BACKEND = "cpu" }, timeout_s = 60 }))
  luaunit.assertEquals(rows(file, KERNELS)[1].name, "nclua_pattern")
end

function TestTrace.test_a_killed_process_leaves_its_file()
  local folder <close> = scratch.folder()
  local file = folder.path .. "/run.sqlite"
  local script = [[
    local cuda = require("nclua.cuda")
    local x = cuda.buffer("f32", 4096)
    for _ = 1, 100 do x:fill(1) end
    cuda.synchronize()
    local stop = cuda.now_ns() + 400000000
    while cuda.now_ns() < stop do end
    require("nclua.process").run({ "sh", "-c", "kill -9 $PPID" })]]
  local result = assert(process.run({ NCLUA, "--trace", file, "-e", script },
    { env = { NCLUA_BACKEND = "cpu" }, timeout_s = 60 }))
  luaunit.assertEquals(result.signal, "SIGKILL")
  local db <close> = assert(sqlite.open(file))
  local count = db:row("SELECT count(*) AS n FROM CUPTI_ACTIVITY_KIND_MEMSET").n
  luaunit.assertEquals(count, 100)
end

function TestTrace.test_traces_a_child()
  local folder <close> = scratch.folder()
  local file = folder.path .. "/child.sqlite"
  local env = { NCLUA_BACKEND = "cpu", NCLUA_TRACE_FILE = "/nonexistent/x" }
  local result = assert(process.run({ NCLUA, "-e", RANKS },
    { trace = file, env = env, timeout_s = 60 }))
  luaunit.assertEquals(result.stderr, "")
  luaunit.assertEquals(result.trace, file)
  luaunit.assertNil(result.trace_error)
  luaunit.assertEquals(#rows(file, KERNELS), 10)
  result = assert(process.run({ "true" }, { trace = file }))
  luaunit.assertNil(result.trace) -- nobody wrote one, and the old one is gone
end

function TestTrace.test_each_process_has_its_file_on_request()
  local folder <close> = scratch.folder()
  local pattern = folder.path .. "/%p.sqlite"
  local result = assert(process.run({ NCLUA, "-e", RANKS },
    { env = { NCLUA_BACKEND = "cpu", NCLUA_TRACE_FILE = pattern }, timeout_s = 60 }))
  luaunit.assertEquals(result.stderr, "")
  local lfs = require("lfs")
  local files = {}
  for name in lfs.dir(folder.path) do
    if name:match("^%d+%.sqlite$") then files[#files + 1] = folder.path .. "/" .. name end
  end
  luaunit.assertEquals(#files, 2)
  local merged = assert(trace.merge(folder.path .. "/all.sqlite", files))
  local kernels = rows(merged, KERNELS)
  luaunit.assertEquals(#kernels, 10)
  for i, file in ipairs(files) do luaunit.assertEquals(#rows(file, KERNELS), 5, i) end
  luaunit.assertEquals(one(merged, "SELECT count(*) FROM TARGET_INFO_GPU"),
    one(files[1], "SELECT count(*) FROM TARGET_INFO_GPU"))
end

function TestTrace.test_an_empty_trace_has_the_tables()
  local folder <close> = scratch.folder()
  local file = run_traced(folder.path, "")
  luaunit.assertEquals(#rows(file, KERNELS), 0)
  luaunit.assertEquals(one(file, "SELECT count(*) FROM TARGET_INFO_SESSION_START_TIME"), 1)
end

-- What known exports of Nsight have, tab-separated: variant, table, columns.
local COLUMNS = "../shared/corpus/s29-nsys-columns.tsv"
-- Not Nsight's, or what only a sampler of the operating system can fill.
local NOT_OURS = { nvprof = true, SCHED_EVENTS = true, COMPOSITE_EVENTS = true }

function TestTrace.test_has_the_columns_of_nsight()
  local list = io.open(COLUMNS) or io.open("../" .. COLUMNS)
  luaunit.skipIf(not list, COLUMNS .. " is not there")
  local folder <close> = scratch.folder()
  local file = run_traced(folder.path, "")
  local db <close> = assert(sqlite.open(file))
  local checked = 0
  for line in list:lines() do
    local variant, name, columns = line:match("^([^#\t]+)\t([^\t]+)\t([^\t]+)$")
    if variant and not NOT_OURS[variant] and not NOT_OURS[name] then
      local has = {}
      for row in db:rows("SELECT name FROM pragma_table_info(?)", name) do
        has[row.name] = true
      end
      for column in columns:gmatch("[^,]+") do
        luaunit.assertTrue(has[column], ("%s: %s.%s"):format(variant, name, column))
        checked = checked + 1
      end
    end
  end
  list:close()
  luaunit.assertTrue(checked > 50)
end
