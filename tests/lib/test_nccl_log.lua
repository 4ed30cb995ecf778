--- nclua.parse.nccl_log: our own fixtures in the forms of NCCL 2.4 to 2.30.
local luaunit = require("luaunit")
local nccl_log = require("nclua.parse.nccl_log")

local function read(name)
  local file <close> = assert(io.open("tests/fixtures/nccl/" .. name, "rb"))
  return file:read("a")
end

local function parse(name, options) return nccl_log.parse(read(name), options) end

TestNcclLog = {}

function TestNcclLog.test_2_4()
  local log = parse("2.4-rings.log")
  luaunit.assertEquals({ log.version, log.ranks, log.nodes, log.is_nodes_inferred },
    { nil, 4, 2, true })
  local group = log.communicators[1]
  luaunit.assertEquals(#group.members, 4)
  luaunit.assertEquals(group.members[3].host, "epsilon")
  luaunit.assertEquals(group.members[1].order[2], "   0   2   1   3")
  luaunit.assertEquals(log.connections[2].high, 1)
  luaunit.assertEquals(log.issue_count, 0)
end

function TestNcclLog.test_2_10()
  local log = parse("2.10-two-nodes.log")
  luaunit.assertEquals({ log.version, log.cuda }, { "2.10.3", "11.4" })
  luaunit.assertEquals({ log.ranks, log.nodes }, { 4, 2 })
  local group = log.communicators[1]
  luaunit.assertEquals(group.channels, { coll = 4, p2p = 4, p2p_per_peer = 2 })
  luaunit.assertEquals(group.thresholds, { { 8, 8, 64 }, { 32, 8, 64 }, { 8, 8, 512 } })
  local ring = group.members[3].graphs.ring
  luaunit.assertEquals({ ring.channels, ring.bw_intra, ring.type_inter }, { 2, 24, "PXB" })
  luaunit.assertEquals(ring.paths[2], "NET/1 GPU/2 GPU/3 NET/1")
  local system = group.members[1].system
  luaunit.assertEquals({ system.max_bw, system.is_width, system.cpu_vendor,
    system.has_nvswitch }, { 24, true, "amd", true })
  luaunit.assertEquals(group.tuning.broadcast.Ring.LL.latency_us, 6.3)
  luaunit.assertEquals(group.max_threads.CollNet.LL128, 640)
  luaunit.assertEquals(#log.operations, 4)
  luaunit.assertEquals(log.operations[1].times, 3)
  luaunit.assertEquals(log.issue_count, 0)
end

function TestNcclLog.test_2_22()
  local log = parse("2.22-numeric-selections.log")
  local group = log.communicators[1]
  luaunit.assertEquals({ group.id, group.ranks, group.nodes }, { "0xabcdef01", 8, 1 })
  luaunit.assertEquals(group.members[1].host, "gamma-gpu0")
  luaunit.assertEquals(group.members[1].graphs.nvls.pattern, 5)
  luaunit.assertEquals(group.members[1].timings_s.graphs, 0.3)
  luaunit.assertEquals(#log.selections, 14)
  local first = log.selections[1]
  luaunit.assertEquals({ first.bytes, first.algorithm_text, first.times }, { 4, "1", 2 })
  luaunit.assertEquals({ first.algorithm, first.protocol }, { "Ring", "LL" })
  luaunit.assertTrue(first.is_total)
  luaunit.assertEquals(log.env[2].name, "NCCL_BUFFSIZE")
  luaunit.assertEquals(log.env[2].value, "8388608")
  luaunit.assertEquals(log.warnings[1].place, "misc/socket.cc:50")
  luaunit.assertStrContains(log.warnings[1].text, "Connection closed")
end

function TestNcclLog.test_2_23()
  local log = parse("2.23-named-selection.log")
  luaunit.assertEquals(#log.selections, 2)
  luaunit.assertEquals({ log.selections[1].collective, log.selections[1].algorithm },
    { "all_gather", "Ring" })
  luaunit.assertEquals({ log.selections[2].algorithm, log.selections[2].time_us },
    { "PAT", 61 })
end

function TestNcclLog.test_glued()
  local texts = {}
  local log = parse("2.28-glued.log", {
    on_text = function(text, line) texts[#texts + 1] = { line, text } end,
  })
  luaunit.assertEquals({ log.ranks, log.nodes, log.is_nodes_inferred }, { 3, 1, true })
  luaunit.assertEquals(log.communicators[1].members[2].graphs.ring.bw_intra, 22)
  luaunit.assertEquals(texts, {
    { 13, "        4096          1024     float     sum      -1" },
    { 14, "   12.50    0.33    0.44      0" },
    { 15, "   12.00    0.34    0.46    N/A" },
  })
  local why = {}
  for i, issue in ipairs(log.issues) do why[i] = issue.line .. " " .. issue.why end
  luaunit.assertEquals(why, {
    "4 a system line that was cut",
    "9 a graph's channel that another message ran into",
    "9 a message that was cut before its first word",
    "9 a communicator line that was cut",
    "11 trees that another message ran into",
    "12 a connection that another message ran into",
    "15 a message that was cut",
    "16 channel counts that were cut",
  })
  luaunit.assertEquals(#log.operations, 2)
  luaunit.assertEquals(log.warnings[1].text, "AllReduce : invalid root 7")
end

function TestNcclLog.test_2_30()
  local log = parse("2.30-forms.log")
  luaunit.assertEquals({ log.version, #log.communicators }, { "2.30.3", 3 })
  luaunit.assertEquals(log.issue_count, 0)
  local world = log.communicators[1]
  luaunit.assertEquals({ world.members[1].state, world.members[2].state },
    { "destroy complete", "abort complete" })
  local split = log.communicators[2].members[1]
  luaunit.assertEquals({ split.call, split.parent, split.color, split.child },
    { "ncclCommSplit", "0x10", 0, 1 })
  luaunit.assertEquals(split.timings_s.connections, 0.01)
  luaunit.assertEquals(log.matrix.Broadcast, { "1", "2", "1", "1", "1", "1" })
  local forms = {}
  for i, selection in ipairs(log.selections) do forms[i] = selection.form end
  luaunit.assertEquals(forms, { "copy_engine", "plain", "symmetric" })
  luaunit.assertEquals(#log.plugins, 3)
  luaunit.assertEquals(log.warnings[1].place, "transport/net.cc:99 (sendProxy)")
  luaunit.assertEquals(log.watchdog.timeouts[1], {
    rank = 1, sequence = 12, operation = "ALLREDUCE", elements_in = 16, elements_out = 16,
    timeout_ms = 5000, ran_ms = 5050,
  })
  luaunit.assertEquals(log.watchdog.pg_status[1], {
    rank = 1, group_id = 2, group_name = "tensor", sequence = 12, enqueued = 14,
    completed = 11,
  })
end

function TestNcclLog.test_records_one_by_one()
  local seen = {}
  parse("2.10-two-nodes.log", {
    on_record = function(topic, record, line)
      seen[topic] = (seen[topic] or 0) + 1
      luaunit.assertTrue(record.last_line == line, topic)
    end,
  })
  luaunit.assertEquals(seen, { operation = 12, connection = 4, link = 4 })
end

-- Lines that repeat for ever fill nothing: what is beyond a limit is counted.
function TestNcclLog.test_limits()
  local parser = nccl_log.parser()
  for i = 1, 3000 do
    parser:feed(("h:%d:%d [0] NCCL INFO ncclCommInitRank comm 0x1 rank 0 nranks 1 cudaDev 0"
      .. " busId 60 commId 0x%x - Init START\n"):format(i, i, i))
    parser:feed(("h:1:1 [0] misc/a.cc:%d NCCL WARN oh\n"):format(i))
    parser:feed("h:1:1 [0] NCCL INFO Pattern 4, crossNic\n")
  end
  local log = parser:finish()
  luaunit.assertEquals(#log.communicators, 1024)
  luaunit.assertEquals(log.left_out["communicator ranks"], 3000 - 1024)
  luaunit.assertEquals({ #log.warnings, log.left_out.warnings }, { 256, 3000 - 256 })
  luaunit.assertEquals({ #log.issues, log.issue_count }, { 100, 3000 })
end
