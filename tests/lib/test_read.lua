--- nclua.read and `nclua read`: every kind of file, every form of output.
local cjson = require("cjson")
local files = require("nclua.files")
local luaunit = require("luaunit")
local output = require("nclua.read.output")
local process = require("nclua.process")
local read = require("nclua.read")
local scratch = require("scratch")
local sqlite = require("nclua.sqlite")

local FIXTURES = "tests/fixtures/"

-- File, kind, tables, problems.
local KINDS = {
  { "nccl/2.10-two-nodes.log", "nccl log", "communicators ranks graphs model operations"
    .. " connections links", 0 },
  { "nccl/2.22-numeric-selections.log", "nccl log", "communicators ranks graphs model"
    .. " selections plugins warnings environment other_messages", 0 },
  { "nccl/2.28-glued.log", "nccl log", "communicators ranks graphs operations connections"
    .. " warnings links", 11 },
  { "nccl/2.30-forms.log", "nccl log + torch watchdog", "timeouts process_groups"
    .. " communicators ranks selections operations plugins warnings environment"
    .. " other_messages", 0 },
  { "nccl_tests/2.9-alltoall.txt", "nccl-tests", "rows runs devices", 0 },
  { "nccl_tests/2.12-cut-rows.txt", "nccl log + nccl-tests", "rows runs devices operations"
    .. " other_messages", 0 },
  { "nccl_tests/v2.json", "nccl-tests JSON", "rows runs devices iterations", 1 },
  { "read/topo.xml", "topology", "gpus nvlinks nets cpus pci", 0 },
  { "read/graphs.xml", "graphs", "graphs paths", 0 },
  { "read/smi.txt", "nvidia-smi topo", "matrix", 0 },
  { "read/observe.csv", "tuner observations", "calls", 4 },
}

local function names_of(doc)
  local names = {}
  for i, data in ipairs(doc.tables) do names[i] = data.name end
  return table.concat(names, " ")
end

local function table_of(doc, name)
  for _, data in ipairs(doc.tables) do
    if data.name == name then return data end
  end
end

local function nclua(arguments, options)
  local argv = { os.getenv("NCLUA"), "read" }
  table.move(arguments, 1, #arguments, 3, argv)
  return assert(process.run(argv, options))
end

TestRead = {}

function TestRead.test_kinds()
  for _, case in ipairs(KINDS) do
    local path, kind, tables, problems = table.unpack(case)
    local doc = assert(read.file(FIXTURES .. path))
    luaunit.assertEquals({ doc.kind, names_of(doc), doc.problem_count },
      { kind, tables, problems }, path)
    local again = assert(read.bytes(assert(files.read(FIXTURES .. path)), FIXTURES .. path))
    luaunit.assertEquals(output.json(again), output.json(doc), path)
  end
end

function TestRead.test_values()
  local calls = table_of(assert(read.file(FIXTURES .. "read/observe.csv")), "calls")
  luaunit.assertEquals({ #calls.rows, calls.rows[1].times, calls.rows[1].bytes },
    { 2, 2, 1024 })
  luaunit.assertEquals({ calls.rows[2].algorithm, calls.rows[2]["ring/simple_us"] },
    { "tree", 27 })
  local matrix = table_of(assert(read.file(FIXTURES .. "read/smi.txt")), "matrix")
  luaunit.assertEquals(matrix.rows[1], { matrix = 1, kind = "links", from = "GPU0",
    to = "GPU1", cell = "NV18", nvlinks = 18, cpu_affinity = "0-31", numa_affinity = "0" })
  luaunit.assertEquals({ matrix.rows[8].kind, matrix.rows[8].cell }, { "peers", "CNS" })
end

function TestRead.test_what_is_nothing()
  for _, case in ipairs({
    { "", "nothing that nclua knows" }, { "hello\nworld\n", "nothing that nclua knows" },
    { "<html/>", "<html> is neither" }, { "\0\1\2", "nothing that nclua knows" },
    { '{"version":1,"start_time":', "nclua knows" },
  }) do
    local doc, message, code = read.bytes(case[1])
    if doc then
      luaunit.assertTrue(doc.problem_count > 0, case[1])
    else
      luaunit.assertStrContains(message, case[2])
      luaunit.assertEquals(code, "EINVAL")
    end
  end
  luaunit.assertEquals(select(3, read.file("tests/none")), "ENOENT")
end

function TestRead.test_status_and_text()
  local result = nclua({ FIXTURES .. "nccl/2.10-two-nodes.log" })
  luaunit.assertEquals({ result.exit_code, result.stderr }, { 0, "" })
  for _, text in ipairs({ "two-nodes.log: nccl log\n", "  NCCL             2.10.3\n",
    "\ngraphs:\n", "more (--all)" }) do
    luaunit.assertStrContains(result.stdout, text)
  end
  luaunit.assertNotStrContains(nclua({ "--all", FIXTURES .. "nccl/2.10-two-nodes.log" })
    .stdout, "more (--all)")
  result = nclua({ FIXTURES .. "nccl/2.28-glued.log" })
  luaunit.assertEquals(result.exit_code, 1)
  luaunit.assertStrContains(result.stdout, "not understood: 11")
  result = nclua({ "tests/none" })
  luaunit.assertEquals(result.exit_code, 1)
  luaunit.assertStrContains(result.stderr, "nclua read: tests/none: cannot open")
  luaunit.assertEquals(nclua({}).exit_code, 2)
  luaunit.assertEquals(nclua({ "--none" }).exit_code, 2)
  luaunit.assertStrContains(nclua({ "--help" }).stdout, "Usage: nclua read")
end

function TestRead.test_json_and_csv()
  local path = FIXTURES .. "nccl_tests/2.9-alltoall.txt"
  local one = cjson.decode(nclua({ "--json", path }).stdout)
  luaunit.assertEquals({ one.kind, one.tables.rows[1].time_us, one.problem_count },
    { "nccl-tests", 61.2, 0 })
  local two = cjson.decode(nclua({ "--json", path, FIXTURES .. "read/topo.xml" }).stdout)
  luaunit.assertEquals({ two[1].path, two[2].kind }, { path, "topology" })
  local csv = nclua({ "--csv", path }).stdout
  luaunit.assertStrMatches(csv:match("^[^\n]*"), "file,run,collective,size_bytes,.*")
  luaunit.assertEquals(select(2, csv:gsub("\n", "")), 3)
  csv = nclua({ "--csv", "--table", "devices", path }).stdout
  luaunit.assertStrContains(csv, "beta,0,0x0f,GPU with a name")
  luaunit.assertStrContains(nclua({ "--csv", "--table", "none", path }).stderr,
    "no table 'none'")
end

function TestRead.test_json_of_any_bytes()
  local doc = assert(read.bytes("h:1:1 [0] NCCL INFO Using network \xff\"\\\1\t\n"))
  luaunit.assertEquals(cjson.decode(output.json(doc)).facts.network, "\xef\xbf\xbd\"\\\1")
end

function TestRead.test_input_and_gzip()
  local text = assert(files.read(FIXTURES .. "nccl_tests/2.9-alltoall.txt"))
  local folder <close> = scratch.folder()
  assert(files.write(folder.path .. "/t.txt", text))
  local packed = assert(process.run({ "gzip", "-c", folder.path .. "/t.txt" })).stdout
  for _, bytes in ipairs({ text, packed }) do
    local result = nclua({ "-" }, { stdin = bytes })
    luaunit.assertEquals(result.exit_code, 0)
    luaunit.assertStrContains(result.stdout, "-: nccl-tests\n")
  end
  assert(files.write(folder.path .. "/cut.gz", packed:sub(1, -30)))
  local result = nclua({ folder.path .. "/cut.gz" })
  luaunit.assertEquals(result.exit_code, 1)
  luaunit.assertStrContains(result.stdout .. result.stderr, "damaged gzip data")
end

function TestRead.test_traces()
  local folder <close> = scratch.folder()
  local path = folder.path .. "/trace.sqlite"
  local db = assert(sqlite.open(path))
  db:exec("create table CUPTI_ACTIVITY_KIND_KERNEL (start integer, end integer,"
    .. " mangledName text, gridX integer)")
  db:exec("insert into CUPTI_ACTIVITY_KIND_KERNEL values (1000, 3000, 'k', 4)")
  db:close()
  local bytes = assert(files.read(path))
  for _, doc in ipairs({ assert(read.file(path)), assert(read.bytes(bytes)) }) do
    luaunit.assertEquals({ doc.kind, table_of(doc, "kernels").rows[1].total_us },
      { "trace", 2 })
  end
  for at = 200, #bytes, 511 do -- damaged anywhere: told, never a crash
    read.bytes(bytes:sub(1, at - 1) .. "\xff\xff\xff" .. bytes:sub(at + 3))
  end
end

function TestRead.test_results_of_a_run()
  local folder <close> = scratch.folder()
  local path = folder.path .. "/results.db"
  local db = assert(sqlite.open(path))
  db:exec("create table run (run_id text, chapter text)")
  db:exec("insert into run values ('r1', 'decode')")
  db:exec("create table measurement (section text, world_size integer, case_name text,"
    .. " metric text, value, correct integer)")
  db:exec("insert into measurement values ('s', 2, 'c', 'us', 1.0, 1),"
    .. " ('s', 2, 'c', 'us', 3.0, 1)")
  db:close()
  local doc = assert(read.file(path))
  luaunit.assertEquals({ doc.kind, doc.problem_count }, { "nclua results", 0 })
  luaunit.assertEquals(table_of(doc, "measurements").rows[1], { section = "s",
    world_size = 2, case_name = "c", metric = "us", samples = 2, median = 2.0,
    correct = 1 })
end

function TestRead.test_database()
  local folder <close> = scratch.folder()
  local path = folder.path .. "/results.db"
  local tests = FIXTURES .. "nccl_tests/"
  for _ = 1, 2 do -- reading again replaces
    local result = nclua({ "--db", path, tests .. "2.9-alltoall.txt",
      tests .. "2.19.6-per-iteration.txt", FIXTURES .. "nccl/2.28-glued.log" })
    luaunit.assertEquals({ result.exit_code, result.stdout }, { 1, "" })
  end
  local db <close> = assert(sqlite.open(path))
  luaunit.assertEquals(db:value("select count(*) from read_file"), 3)
  luaunit.assertEquals(db:value("select count(*) from read_rows"), 5)
  luaunit.assertEquals(db:value("select p99_us from read_rows where cycle = 1"), 40.12)
  luaunit.assertEquals(db:value("select problems from read_file where kind = 'nccl log'"),
    11)
end

local OWN = [[
local cuda, nccl = require("nclua.cuda"), require("nclua.nccl")
local comms, buffers = nccl.init_all(2), {}
for i, comm in ipairs(comms) do
  cuda.set_device(comm.device)
  buffers[i] = cuda.buffer("f32", 4096):fill(1)
end
nccl.group(function()
  for i, comm in ipairs(comms) do comm:all_reduce(buffers[i], buffers[i], "sum") end
end)
for _, comm in ipairs(comms) do
  cuda.set_device(comm.device)
  cuda.synchronize()
  comm:close()
end
]]

-- What nclua itself writes: the CPU backend's log, the tuner's observations, a trace.
function TestRead.test_our_own_output()
  local folder <close> = scratch.folder()
  local at = folder.path .. "/"
  local plugin = os.getenv("NCLUA"):gsub("[^/]*$", "") .. "plugins/libnccl-tuner-nclua.so"
  local result = assert(process.run({ os.getenv("NCLUA"), "--backend", "cpu", "--trace",
    at .. "trace.sqlite", "-e", OWN }, { env = {
      NCCL_DEBUG = "INFO", NCCL_DEBUG_SUBSYS = "ALL", NCCL_DEBUG_FILE = at .. "log",
      NCCL_TUNER_PLUGIN = plugin, NCLUA_TUNER_OBSERVE = at .. "observe.csv",
    } }))
  luaunit.assertTrue(result.ok, result.stderr)
  for _, case in ipairs({
    { "log", "nccl log", "operations", 2 },
    { "observe.csv", "tuner observations", "calls" },
    { "trace.sqlite", "trace", "kernels" },
  }) do
    local doc = assert(read.file(at .. case[1]))
    luaunit.assertEquals({ doc.kind, doc.problem_count }, { case[2], 0 }, case[1])
    luaunit.assertEquals(#table_of(doc, case[3]).rows, case[4] or 1, case[1])
  end
end

function TestRead.test_ranks_of_a_run()
  local result = nclua({ FIXTURES .. "ranks" })
  luaunit.assertEquals(result.exit_code, 0)
  luaunit.assertStrContains(result.stdout, "comparison: ranks of one run\n")
  luaunit.assertStrMatches(result.stdout, ".*odd one out +rank 2 %(tests/.*rank2.log%).*")
  local json = cjson.decode(nclua({ "--json", FIXTURES .. "ranks" }).stdout)[1]
  local properties = {}
  for i, row in ipairs(json.tables.differences) do properties[i] = row.property end
  luaunit.assertEquals(properties, { "env NCCL_IB_HCA", "graph ring", "init seconds",
    "last opCount", "operations", "operations called", "warnings" })
  luaunit.assertEquals(json.tables.differences[4].usual, "4")
end
