--- A stranger's tuner plugin steers the CPU backend, and the log says so in NCCL's words.
local luaunit = require("luaunit")
local process = require("nclua.process")

local FOLDER, OTHER = os.getenv("FOREIGN_FOLDER"), os.getenv("FOREIGN_OTHER")

-- Both ranks in one process, so that one plugin has two contexts.
local PROLOGUE = [[
local cuda, nccl = require("nclua.cuda"), require("nclua.nccl")
local comms = assert(nccl.init_all(2))
local send, recv = {}, {}
for i, comm in ipairs(comms) do
  cuda.set_device(comm.device)
  send[i], recv[i] = assert(cuda.buffer("f32", 1024)), assert(cuda.buffer("f32", 1024))
  send[i]:fill(i)
end
local function reduce(times)
  nccl.group(function()
    for _ = 1, times or 1 do
      for i, comm in ipairs(comms) do comm:all_reduce(send[i], recv[i], "sum") end
    end
  end)
  for i, comm in ipairs(comms) do
    cuda.set_device(comm.device)
    assert(recv[i]:compare(3) == 0)
    local c = comm:last_choice()
    print("choice", comm.rank, c.algorithm, c.protocol, c.source)
  end
end
]]

local EPILOGUE = "\nfor _, comm in ipairs(comms) do comm:close() end\n"

local function start(code, plugin, wish, more)
  local env = {
    NCCL_DEBUG = "INFO", NCCL_DEBUG_SUBSYS = "INIT,ENV,TUNING",
    NCLUA_CPU_CONSTANTS = "none",
    FOREIGN_TUNER = wish, NCCL_TUNER_PLUGIN = plugin, LD_LIBRARY_PATH = FOLDER,
  }
  for name, value in pairs(more or {}) do env[name] = value end
  local result = assert(process.run({ os.getenv("NCLUA"), "-e", code },
    { env = env, unset = { "NCCL_*" }, timeout_s = 60 }))
  return "\n" .. result.stdout, result
end

local function run(plugin, wish, code, more)
  return start(PROLOGUE .. (code or "reduce()") .. EPILOGUE, plugin, wish, more)
end

local function escape(path) return (path:gsub("%p", "%%%0")) end

-- Lua patterns for what NCCL 2.28.3 prints; the order counts.
local function check(text, patterns)
  local at = 1
  for _, pattern in ipairs(patterns) do
    local first, last = text:find(pattern, at)
    luaunit.assertNotNil(first, ("no %q (after byte %d) in\n%s"):format(pattern, at, text))
    at = last -- the end of a line may be where the next begins
  end
end

local function check_absent(text, pattern)
  luaunit.assertNil(text:find(pattern), ("%q in\n%s"):format(pattern, text))
end

local PREFIX = "\n[%w-]+:%d+:%d+ %[%d%] NCCL INFO "

TestForeignTuner = {}

function TestForeignTuner.test_every_version_steers()
  for version = 2, 5 do
    local path = ("%s/libnccl-tuner-foreign%d.so"):format(FOLDER, version)
    for wish, name in pairs({ tree = "Tree", ring = "Ring" }) do
      local text = run(path, wish)
      check(text, {
        PREFIX .. "NCCL_TUNER_PLUGIN set by environment to " .. escape(path) .. "\n",
        PREFIX .. ("TUNER/Plugin: Using foreign %%(v%d%%)\n"):format(version),
        PREFIX .. "Successfully loaded external tuner plugin " .. escape(path) .. "\n",
        PREFIX .. "foreign: 2 ranks, 1 nodes\n",
        PREFIX .. "AllReduce: 4096 Bytes %-> Algo " .. name:upper()
          .. " proto SIMPLE channel{Lo%.%.Hi}={0%.%.0}\n",
        "choice\t0\t" .. name .. "\tSimple\tcpu backend\n",
        "choice\t1\t" .. name .. "\tSimple\tcpu backend\n",
        PREFIX .. "foreign: 1 left\n",
        PREFIX .. "foreign: 0 left\n",
        PREFIX .. "TUNER/Plugin: Closing tuner: 'foreign'\n",
      })
    end
  end
end

function TestForeignTuner.test_what_a_plugin_is_asked()
  local text = run("foreign5", nil, [[
    reduce()
    local held = {}
    for i, comm in ipairs(comms) do
      held[#held + 1] = assert(comm:register(send[i]))
      held[#held + 1] = assert(comm:register(recv[i]))
    end
    reduce()
    for _, one in ipairs(held) do one:close() end
    reduce(3)
    nccl.group(function()
      for i, comm in ipairs(comms) do
        comm:all_gather(send[i]:slice(1, 512), recv[i])
      end
    end)
  ]])
  check(text, {
    "foreign: comm 0x%x+ domains 1 2 2\n",
    "foreign: asked func 4 bytes 4096 ops 1 reg 0 channels 0 dead %d+\n",
    "foreign: asked func 4 bytes 4096 ops 1 reg 1 channels 0 dead %d+\n",
    "foreign: asked func 4 bytes 12288 ops 3 reg 0 channels 0 dead %d+\n",
    "foreign: asked func 2 bytes 4096 ops 1 reg 0 channels 0 dead %d+\n",
    "AllGather: 2048 Bytes %-> Algo RING",
  })
end

-- Operations of a group are asked for as one if they are of a kind and less than four times
-- the smallest; the operations of the whole group count, over channels.
function TestForeignTuner.test_groups_are_asked_for_as_nccl_aggregates()
  local text = run("foreign5", nil, [[
    local big = {}
    for i, comm in ipairs(comms) do
      cuda.set_device(comm.device)
      big[i] = assert(cuda.buffer("f32", 4096)):fill(1)
    end
    nccl.group(function()
      for i, comm in ipairs(comms) do
        comm:all_reduce(big[i], big[i], "max")
        comm:all_reduce(send[i], send[i], "sum")
        comm:all_reduce(send[i]:slice(1, 300), recv[i]:slice(1, 300), "sum")
        comm:all_reduce(big[i], big[i], "sum")
      end
    end)
    for _, comm in ipairs(comms) do
      cuda.set_device(comm.device)
      cuda.synchronize()
    end
  ]])
  local asked = {}
  for bytes, ops in text:gmatch("foreign: asked func 4 bytes (%d+) ops (%d+)") do
    asked[#asked + 1] = bytes .. "/" .. ops
  end
  -- 1200 + 4096 together, 16384 alone, and the maximum apart; on two communicators.
  table.sort(asked)
  luaunit.assertEquals(table.concat(asked, " "),
    "16384/4 16384/4 16384/4 16384/4 5296/4 5296/4")
end

local CAPTURE = [[
local ranks = require("nclua.ranks")
assert(ranks.run({ n = 2, fn = function(rank)
  local cuda = require("nclua.cuda")
  local comm <close> = rank:comm()
  local stream <close> = assert(cuda.stream())
  local x <close> = assert(cuda.buffer("f32", 8)):fill(1)
  local graph <close> = assert(stream:capture(function()
    comm:all_reduce(x, x, "sum", stream)
  end))
  graph:launch(stream)
  stream:sync()
  assert(x:compare(2) == 0)
end }))
]]

function TestForeignTuner.test_captured_calls_count_as_registered()
  check(start(CAPTURE, "foreign5"), { "foreign: asked func 4 bytes 32 ops 1 reg 1 " })
  check(start(CAPTURE, "foreign5", nil, { NCCL_GRAPH_REGISTER = "0" }), {
    "foreign: asked func 4 bytes 32 ops 1 reg 0 " })
end

-- 0 channels keeps the model's; another number is taken up to the communicator's.
function TestForeignTuner.test_channels()
  local function high(wish, channels)
    local text = run("foreign5", wish, [[
      nccl.group(function()
        for i, comm in ipairs(comms) do
          cuda.set_device(comm.device)
          send[i] = assert(cuda.buffer("u8", 16 << 20)):fill(1)
          comm:all_reduce(send[i], send[i], "max")
        end
      end)
    ]], { NCCL_MIN_NCHANNELS = channels })
    return tonumber(text:match("16777216 Bytes %-> Algo %u+ proto SIMPLE channel"
      .. "{Lo%.%.Hi}={0%.%.(%d+)}"))
  end
  luaunit.assertEquals(high("tree", 4), 3)
  luaunit.assertEquals(high("channels", 4), 1)
  luaunit.assertEquals(high("channels", 1), 0)
end

function TestForeignTuner.test_search_order()
  check(run("foreign4", "tree"), {
    "TUNER/Plugin: Using foreign %(v4%)\n",
    "external tuner plugin " .. escape(FOLDER) .. "/libnccl%-tuner%-foreign4%.so\n",
    "Algo TREE",
  })
  check(run("libnccl-tuner-foreign3.so", "tree"), { "Using foreign %(v3%)\n" })
  check(run("nowhere"), {
    PREFIX .. "TUNER/Plugin: Could not find: nowhere libnccl%-tuner%-nowhere%.so%. "
      .. "Using internal tuner plugin%.\n",
    "choice\t0\tRing",
  })
  check(run("libnowhere.so"), { "Could not find: libnowhere%.so%. Using" })
  check(run("/no/where.so"), { "Could not find: /no/where%.so%. Using" })
  check(run(nil), {
    "Could not find: libnccl%-tuner%.so%. Using internal tuner plugin%.\n" })
  check(run("None"), { "NCCL_TUNER_PLUGIN set by environment to None\n", "choice" })
  check_absent(run("none"), "TUNER/Plugin")
  check(run(OTHER), {
    PREFIX .. "External tuner plugin " .. escape(OTHER) .. " is unsupported\n",
    "choice" })
  check(run("STATIC_PLUGIN"), { "External tuner plugin  is unsupported\n", "choice" })
end

function TestForeignTuner.test_a_missing_plugin_is_looked_for_once()
  local text = run("nowhere", nil, [[
    reduce()
    local id = assert(nccl.unique_id())
    local one = assert(nccl.comm({ id = id, rank = 0, count = 1 }))
    one:close()
  ]])
  local _, times = text:gsub("Could not find", "")
  luaunit.assertEquals(times, 1)
end

function TestForeignTuner.test_failures()
  for version = 2, 5 do
    local plugin = "foreign" .. version
    local _, failed = run(plugin, "fail")
    luaunit.assertEquals(failed.exit_code, 1, failed.stdout)
    luaunit.assertStrContains(failed.stderr,
      "ncclInternalError: tuner plugin 'foreign' returned 3")
    local _, refused = run(plugin, "refuse")
    luaunit.assertStrContains(refused.stderr, "ncclSystemError")
    luaunit.assertStrContains(refused.stderr,
      "the init of tuner plugin 'foreign' returned 2")
    check(refused.stdout, { "\n%[%d+%-%d+%-%d+ [%d:]+%] [%w-]+:%d+:%d+ %[%d%] "
      .. "foreign%.c:42 NCCL WARN foreign: I refuse\n" })
  end
  local _, raised = run("foreign5", "raise")
  luaunit.assertStrContains(raised.stderr,
    "the tuner plugin made NVLS/Simple available for AllReduce, which it is not")
end

function TestForeignTuner.test_version_5_edits_the_model()
  local function latency(wish)
    local text = run("foreign5", wish)
    local row = text:match("AllReduce |([^\n]*)")
    local cells = {}
    for cell in row:gmatch("([%d.]+)/") do cells[#cells + 1] = tonumber(cell) end
    return cells[3], cells[6], text
  end
  local tree, ring = latency(nil)
  local same_tree, slow_ring, text = latency("slow_ring")
  luaunit.assertEquals(same_tree, tree)
  luaunit.assertAlmostEquals(slow_ring, ring + 5000, 0.2)
  check(text, { "AllReduce: 4096 Bytes %-> Algo TREE" })
end
