--- The CPU backend's log: every line is one of NCCL 2.28's, and the variables are obeyed.
--- The patterns are those of the format strings that NCCL 2.28.3 prints.
local files = require("nclua.files")
local luaunit = require("luaunit")
local nccl_log = require("nclua.parse.nccl_log")
local process = require("nclua.process")
local scratch = require("scratch")

local PROGRAM = [[
local cuda, nccl = require("nclua.cuda"), require("nclua.nccl")
local comms = assert(nccl.init_all(3))
local x = {}
for i, comm in ipairs(comms) do
  cuda.set_device(comm.device)
  x[i] = assert(cuda.buffer("f16", 4096)):fill(1)
end
local function each(fn)
  nccl.group(function() for i, comm in ipairs(comms) do fn(comm, x[i]) end end)
  for i in ipairs(comms) do
    cuda.set_device(i - 1)
    cuda.synchronize()
  end
end
each(function(comm, b) comm:all_reduce(b, b, "max") end)
each(function(comm, b) comm:all_gather(b:slice(1, 100), b:slice(1001, 300)) end)
each(function(comm, b) comm:broadcast(b, b, 2) end)
each(function(comm, b)
  if comm.rank == 0 then comm:send(b, 1) elseif comm.rank == 1 then comm:recv(b, 0) end
end)
local halves
nccl.group(function()
  halves = {}
  for i, comm in ipairs(comms) do
    halves[i] = (comm:split(comm.rank < 2 and 7 or nil, -comm.rank))
  end
end)
]]
local END = [[
for _, comm in pairs(halves) do comm:close() end
for i = 3, 2, -1 do comms[i]:close() end
comms[1]:abort()
]]

local function run(env, code)
  env.NCLUA_CPU_CONSTANTS = env.NCLUA_CPU_CONSTANTS or "none"
  local result = assert(process.run(
    { os.getenv("NCLUA"), "-e", code or PROGRAM .. END },
    { env = env, unset = { "NCCL_*" }, timeout_s = 60 }))
  luaunit.assertEquals(result.exit_code, 0, result.stderr)
  return result.stdout
end

-- What a line of each kind looks like behind "HOST:PID:TID [DEV] NCCL INFO ", as Lua
-- patterns; how often three ranks print it (nil: at least once).
local POINTER, NUMBER = "0x%x+", "%-?%d+"
local START = "comm " .. POINTER .. " rank %d nranks %d cudaDev %d nvmlDev %d busId %x+ "
local TREE = NUMBER .. " %-> %d %-> " .. NUMBER .. "/" .. NUMBER .. "/" .. NUMBER
local PATTERN = ", crossNic 0, nChannels %d+, bw %d+%.%d+/%d+%.%d+, type %u+/%u+, "
  .. "sameChannels [01]"

-- An operation's line of a call on three ranks.
local function call(name, send, count, op, root)
  return ("%s: opCount %%x+ sendbuff %s recvbuff %s count %d datatype 6 op %d root %d comm "
    .. "%s %%[nranks=3%%] stream [%%x()nil]+"):format(name, send, POINTER, count, op, root,
    POINTER)
end

local function choice(name, bytes, algorithm)
  return ("%s: %d Bytes %%-> Algo %s proto [%%u%%d]+ "
    .. "channel{Lo%%.%%.Hi}={0%%.%%.%%d}"):format(
    name, bytes, algorithm)
end
local KINDS = {
  { "cudaDriverVersion %d+", 1 },
  { "NCCL version 2%.28%.3%+cuda%d+%.%d+", 1 },
  { "This is not NCCL: the ranks run on .+ %(nclua CPU backend%)", 1 },
  { "ncclCommInitAll " .. START .. "commId 0x%x+ %- Init START", 3 },
  { "ncclCommInitAll " .. START .. "commId 0x%x+ %- Init COMPLETE", 3 },
  { "ncclCommSplit " .. START .. "parent " .. POINTER .. " splitCount 1 color 7 key "
    .. NUMBER .. "%- Init START", 2 },
  { "ncclCommSplit " .. START .. "parent " .. POINTER .. " splitCount 1 color 7 key "
    .. NUMBER .. " %- Init COMPLETE", 2 },
  { "NCCL_ALGO set by environment to ring;allreduce:tree,ring", 5 },
  { "NCCL_MIN_NCHANNELS set by environment to 2%.", 1 },
  { "NCCL_BUFFSIZE set by environment to 1048576%.", 1 },
  { "TUNER/Plugin: Could not find: libnccl%-tuner%.so%. Using internal tuner plugin%.", 1 },
  { "Pattern [13]" .. PATTERN, 5 },
  { "Pattern 4" .. PATTERN, 5 },
  { "[ %d]%d : GPU/0%-%x+ GPU/0%-%x+ GPU/0%-%x+" },
  { "[ %d]%d : GPU/0%-%x+ GPU/0%-%x+" },
  { "comm " .. POINTER .. " rank %d nRanks 3 nNodes 1 localRanks 3 localRank %d MNNVL 0",
    3 },
  { "comm " .. POINTER .. " rank %d nRanks 2 nNodes 1 localRanks 2 localRank %d MNNVL 0",
    2 },
  { "Channel %d%d/%d%d : %d %d %d" },
  { "Channel %d%d/%d%d : %d %d" },
  { "Channel %d%d : %d%[%d%] %-> %d%[%d%] via SHM/direct/direct" },
  { "Ring %d%d : %d %-> %d %-> %d" },
  { "Tree %d+ : " .. TREE },
  { "Trees %[0%] [%-%d/>%[%] ]+", 5 },
  { "P2P Chunksize set to %d+", 5 },
  { "Enabled NCCL Func/Proto/Algo Matrix:", 2 },
  { "  Algorithm   | [ %a|]+|", 6 },
  { "  Protocol    | [ %a%d|]+|", 6 },
  { " Max NThreads | [ %d|]+|", 6 },
  { "    Broadcast |[ %d%./|]+|", 6 },
  { "       Reduce |[ %d%./|]+|", 6 },
  { "    AllGather |[ %d%./|]+|", 6 },
  { "ReduceScatter |[ %d%./|]+|", 6 },
  { "    AllReduce |[ %d%./|]+|", 6 },
  { "threadThresholds %d+/%d+/%d+ | %d+/%d+/%d+ | %d+ | %d+", 5 },
  { "%d+ coll channels, %d+ collnet channels, 0 nvls channels, %d+ p2p channels, %d+ p2p "
    .. "channels per peer", 5 },
  { "Connected all rings, use ring PXN 0 GDR 0", 5 },
  { "Connected all trees", 5 },
  { call("AllReduce", POINTER, 4096, 2, 0), 3 },
  { call("AllGather", POINTER, 100, 0, 0), 3 },
  { call("Broadcast", POINTER, 4096, 0, 2), 3 },
  { call("Send", "%(nil%)", 4096, 0, 1), 1 },
  { call("Recv", "%(nil%)", 4096, 0, 0), 1 },
  { choice("AllReduce", 8192, "%u+"), 1 },
  { choice("AllGather", 200, "RING"), 1 },
  { choice("Broadcast", 8192, "RING"), 1 },
  { "comm " .. POINTER .. " rank %d nranks %d cudaDev %d busId %x+ %- Destroy COMPLETE",
    4 },
  { "comm " .. POINTER .. " rank 0 nRanks 3 cudaDev 0 busId %x+ %- Abort START", 1 },
  { "comm " .. POINTER .. " rank 0 nranks 3 cudaDev 0 busId %x+ %- Abort COMPLETE", 1 },
  { "Rank 2 has color with NCCL_SPLIT_NOCOLOR, not creating a new communicator", 1 },
}

local FULL = {
  NCCL_DEBUG = "INFO", NCCL_DEBUG_SUBSYS = "ALL", NCCL_MIN_NCHANNELS = "2",
  NCCL_BUFFSIZE = "0x100000",
  NCCL_ALGO = "ring;allreduce:tree,ring",
}

local function copy(env, more)
  local result = {}
  for name, value in pairs(env) do result[name] = value end
  for name, value in pairs(more or {}) do result[name] = value end
  return result
end

local MATRIX_ROW = "^ *%a+ |[ %d%a]+|[ %d%a]+$"

-- Counts the lines by kind; a line of no kind fails.
local function count_kinds(text)
  local counts = {}
  for line in text:gmatch("([^\n]*)\n") do
    local message = line:match("^[%w-]+:%d+:%d+ %[%d%] NCCL INFO (.*)$")
    local found = message == nil and (line == "" or line:match(MATRIX_ROW) ~= nil)
    for i, kind in ipairs(KINDS) do
      if message and message:match("^" .. kind[1] .. "$") then
        counts[i], found = (counts[i] or 0) + 1, true
        break
      end
    end
    luaunit.assertTrue(found, "a line of no known kind: " .. line)
  end
  return counts
end

TestCpuLog = {}

function TestCpuLog.test_every_line_is_one_of_nccls()
  local counts = count_kinds(run(copy(FULL)))
  for i, kind in ipairs(KINDS) do
    local wanted = kind[2]
    local is_right = wanted and counts[i] == wanted or not wanted and counts[i] ~= nil
    luaunit.assertTrue(is_right,
      ("%s lines like %q, want %s"):format(counts[i], kind[1], wanted or "some"))
  end
end

function TestCpuLog.test_the_parser_reads_it_as_nccls()
  local log = nccl_log.parse(run(copy(FULL)))
  luaunit.assertEquals({ log.version, log.ranks, log.nodes }, { "2.28.3", 3, 1 })
  luaunit.assertEquals({ log.issue_count, #log.communicators }, { 0, 2 })
  local first = log.communicators[1]
  luaunit.assertEquals({ #first.members, first.ranks }, { 3, 3 })
  for i, member in ipairs(first.members) do
    luaunit.assertEquals(member.rank, i - 1)
    luaunit.assertEquals(member.graphs.ring.channels, first.channels.coll)
  end
  luaunit.assertTrue(first.tuning.all_reduce.Ring.Simple.bandwidth_gbps > 0)
  luaunit.assertTrue(first.tuning.all_reduce.Tree.Simple.latency_us > 0)
  local selected = {}
  for i, s in ipairs(log.selections) do selected[i] = s.collective .. " " .. s.bytes end
  luaunit.assertEquals(selected, { "all_gather 200", "all_reduce 8192", "broadcast 8192" })
  luaunit.assertEquals(log.env[1].name, "NCCL_ALGO")
end

local function lines_of(text, pattern)
  local _, count = text:gsub(pattern, "")
  return count
end

function TestCpuLog.test_subsystems()
  local cases = {
    -- NCCL_DEBUG_SUBSYS, what is there, what is not
    { nil, "Init COMPLETE", "opCount" },
    { nil, "NCCL_ALGO set by", "Pattern" },
    { "COLL", "opCount", "Init COMPLETE" },
    { "coll,GRAPH", "Pattern", "Bytes %->" },
    { "TUNING", "Bytes %->", "opCount" },
    { "^COLL,TUNING", "Ring 00", "opCount" },
    { "^INIT", "Bytes %->", "Init START" },
    { "ENV", "NCCL_ALGO set by", "Connected all" },
    { "NONSENSE", "^$", "NCCL" },
    { "ALL", "opCount", "WARN" },
  }
  for _, case in ipairs(cases) do
    local env = copy(FULL, { NCCL_DEBUG = "info" })
    env.NCCL_DEBUG_SUBSYS = case[1]
    local text = run(env)
    local label = case[1] or "default"
    luaunit.assertTrue(lines_of(text, case[2]) > 0, label .. " lacks " .. case[2])
    luaunit.assertEquals(lines_of(text, case[3]), 0, label .. " has " .. case[3])
  end
end

local FAILING = [[
local nccl = require("nclua.nccl")
assert(not nccl.comm({ id = ("x"):rep(128), rank = 0, count = 2 }))
local id = assert(nccl.unique_id())
assert(nccl.comm({ id = id, rank = 0, count = 1 })):close()
]]
local WARNING = "\n%[%d%d%d%d%-%d%d%-%d%d %d%d:%d%d:%d%d%] [%w-]+:%d+:%d+ %[0%] "
  .. "cpu/comm%.c:%d+ NCCL WARN not a unique id of the cpu backend\n"

function TestCpuLog.test_levels()
  luaunit.assertEquals(run({}, FAILING), "")
  luaunit.assertEquals(run({ NCCL_DEBUG = "nonsense" }, FAILING), "")
  local version = "^NCCL version 2%.28%.3%+cuda[%d.]+\nThis is not NCCL[^\n]*\n"
  luaunit.assertStrMatches(run({ NCCL_DEBUG = "VERSION" }, FAILING), version .. "$")
  luaunit.assertStrMatches(run({ NCCL_DEBUG = "WARN" }, FAILING), version .. WARNING .. "$")
  local text = run({ NCCL_DEBUG = "INFO" }, FAILING)
  luaunit.assertEquals(lines_of(text, WARNING), 1, text)
  luaunit.assertEquals(lines_of(text, "\n[%w-]+:%d+:%d+ %[0%] NCCL INFO "
    .. "NCCL version 2%.28%.3"), 1, text)
end

function TestCpuLog.test_timestamps()
  local function first(levels, format)
    local text = run({ NCCL_DEBUG = "INFO", NCCL_DEBUG_TIMESTAMP_LEVELS = levels,
      NCCL_DEBUG_TIMESTAMP_FORMAT = format }, FAILING)
    return text:match("([^\n]*)cudaDriverVersion"), text
  end
  luaunit.assertStrMatches(first(nil), "[%w-]+:%d+:%d+ %[0%] NCCL INFO ")
  luaunit.assertStrMatches(first("INFO"), "%[%d+%-%d+%-%d+ [%d:]+%] [%w-]+:.*")
  luaunit.assertStrMatches(first("all", "%Y_%3f%%x "), "%d%d%d%d %d%d%d%%x [%w-]+:.*")
  luaunit.assertStrMatches(first("info,warn", ""), "[%w-]+:%d+:%d+ .*")
  luaunit.assertStrMatches(first("^INFO"), "[%w-]+:%d+:%d+ .*")
  local _, text = first("^WARN")
  luaunit.assertStrContains(text, "\n[") -- VERSION, INFO, ... have one; WARN has none
  luaunit.assertEquals(lines_of(text, "\n\n[%w-]+:%d+:%d+ %[0%] cpu/comm%.c:"), 1, text)
end

function TestCpuLog.test_file()
  local folder <close> = scratch.folder()
  local text = run({ NCCL_DEBUG = "INFO",
    NCCL_DEBUG_FILE = folder.path .. "/log.%h.%p.%%.%x" }, FAILING)
  luaunit.assertEquals(text, "")
  local lfs = require("lfs")
  local names = {}
  for name in lfs.dir(folder.path) do
    if name:sub(1, 1) ~= "." then names[#names + 1] = name end
  end
  luaunit.assertEquals(#names, 1)
  luaunit.assertStrMatches(names[1], "log%.[%w-]+%.%d+%.%%%.%%x")
  local log = assert(files.read(folder.path .. "/" .. names[1]))
  luaunit.assertStrContains(log, "NCCL version 2.28.3")
  luaunit.assertEquals(lines_of(log, WARNING), 1, log)
end

-- NCCL cuts the whole line after 1023 bytes.
function TestCpuLog.test_long_lines_are_cut()
  local text = run({ NCCL_DEBUG = "INFO", NCCL_ALGO = ("ring,"):rep(400) .. "tree" })
  local line = text:match("[^\n]*NCCL_ALGO set by[^\n]*\n")
  luaunit.assertEquals(#line, 1024)
end

-- What NCCL says of a mistake in its variables.
function TestCpuLog.test_mistakes_in_lists()
  local cases = {
    { "NCCL_ALGO", "star", 'Unrecognized element token "star" when parsing "star"' },
    { "NCCL_ALGO", "ring;allsum:tree",
      'Unrecognized prefix token "allsum" when parsing "ring;allsum:tree"' },
    { "NCCL_ALGO", "ring;tree",
      'All entries except the first must have a prefix: "ring;tree"' },
    { "NCCL_PROTO", "allreduce:^ll,llx",
      'Unrecognized element token "llx" when parsing "allreduce:^ll,llx"' },
  }
  for _, case in ipairs(cases) do
    local text = run({ NCCL_DEBUG = "WARN", [case[1]] = case[2] }, [[
      local nccl = require("nclua.nccl")
      local comms, message, code = nccl.init_all(2)
      assert(not comms and code == "ncclInvalidUsage", message)
    ]])
    luaunit.assertStrContains(text, "NCCL WARN " .. case[3] .. "\n")
  end
end

function TestCpuLog.test_nothing_left_to_choose()
  local text = run({ NCCL_DEBUG = "WARN", NCCL_ALGO = "tree", NCCL_PROTO = "simple" }, [[
    local cuda, nccl = require("nclua.cuda"), require("nclua.nccl")
    local comms = assert(nccl.init_all(2))
    local x <close> = assert(cuda.buffer("f32", 8))
    local ok, message = pcall(nccl.group, function() comms[1]:broadcast(x, x, 0) end)
    assert(not ok and message:find("ncclInvalidUsage"), message)
    for _, comm in ipairs(comms) do comm:close() end
  ]])
  luaunit.assertStrContains(text, "NCCL WARN Error : no algorithm/protocol available for "
    .. "function Broadcast with datatype ncclFloat32. NCCL_ALGO was set to tree. "
    .. "NCCL_PROTO was set to simple.\n")
end
