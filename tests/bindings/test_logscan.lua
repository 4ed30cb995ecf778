--- nclua.logscan: what is found in a stream, in whatever pieces it comes.
local logscan = require("nclua.logscan")
local luaunit = require("luaunit")

local function scan(text, options)
  local scanner = logscan.new(options)
  local events = {}
  local function listen(...) events[#events + 1] = { ... } end
  scanner:feed(text, listen):finish(listen)
  return scanner, events
end

local P = "host:1:2 [0] NCCL INFO "

-- Line, then what its events say: topic and text.
local LINES = {
  { "", {} },
  { "   ", {} },
  { "plain text", { "text:plain text" } },
  { P .. "Bootstrap : Using eth0", {} },
  { P .. "NCCL version 2.28.3+cuda13.0", { "version:NCCL version 2.28.3+cuda13.0" } },
  { "[0] " .. P .. "Trees [0] 1", { "trees:Trees [0] 1" } },
  { "[1,3]<stdout>:" .. P .. "Trees", { "trees:Trees" } },
  { " 3: " .. P .. "Trees", { "trees:Trees" } },
  { "(task, rank=0, pid=4) " .. P .. "Trees", { "trees:Trees" } },
  { "[2026-01-31 10:00:00] " .. P .. "Trees", { "trees:Trees" } },
  { "3  float  -1" .. P .. "Trees", { "text:3  float  -1", "trees:Trees" } },
  { "0 N/A" .. P .. "Trees", { "text:0 N/A", "trees:Trees" } },
  { "host:1:2 [0] initTrees, 12 NCCL INFO Trees", { "trees:Trees" } },
  { "host:1:2 [-1] a/b.cc:7 NCCL WARN oh", { "warn:oh" } },
  { "host:1:2 [0] a/b.cc:7 (fn) NCCL WARN oh", { "warn:oh" } },
  { "host:1:2 [0] 12.500000 fn:7 NCCL TRACE oh", {} },
  { "host:1:2 NCCL CALL ncclGroupStart()", {} },
  { "this is not NCCL INFO at all", { "text:this is not NCCL INFO at all" } },
  { "x:1 [0] NCCL INFO Trees", { "text:x:1 [0] NCCL INFO Trees" } },
  { P .. "Trees" .. P .. "Trees", { "trees:Trees", "trees:Trees" } },
  { P .. P .. "Trees", { "issue:", "trees:Trees" } },
  { P .. "AllReduce: opCount 5 sendbuff 0x", { "issue:AllReduce: opCount 5 sendbuff 0x" } },
  { P .. "AllReduce: 64 Bytes -> Algo RI", { "issue:AllReduce: 64 Bytes -> Algo RI" } },
  { P .. "Ring 00 : 1 ->", { "issue:Ring 00 : 1 ->" } },
  { P .. "Channel 00/04 :  0 1", { "order:Channel 00/04 :  0 1" } },
  { P .. " 3 : GPU/0 GPU/1", { "hops: 3 : GPU/0 GPU/1" } },
  { P .. "24 coll channels, 1", { "channels:24 coll channels, 1" } },
  { "  AllReduce: 8 Bytes-> Algo RING proto LL  channel{Lo..Hi}={0..0}", {} },
}

TestLogscan = {}

function TestLogscan.test_lines()
  for _, case in ipairs(LINES) do
    for _, ending in ipairs({ "\n", "\r\n", "" }) do
      local scanner, events = scan(P .. "x\n" .. case[1] .. ending)
      local got = {}
      for i, event in ipairs(events) do got[i] = event[1] .. ":" .. event[2] end
      luaunit.assertEquals(got, case[2], case[1])
      scanner:close()
    end
  end
end

local OPERATION = "%s: opCount %x sendbuff 0x10 recvbuff %s count %d datatype 7 op 0 root 0"
  .. " comm 0xc0 [nranks=4] stream 0x1"

function TestLogscan.test_operations()
  local lines = {}
  for i = 0, 9 do
    lines[#lines + 1] = P .. OPERATION:format("AllReduce", i, "0x20", 64 << (i % 2))
  end
  lines[#lines + 1] = P .. OPERATION:format("AllReduce", 10, "0x10", 64)
  local scanner = scan(table.concat(lines, "\n"))
  local records = scanner:records("operation")
  luaunit.assertEquals(#records, 3)
  luaunit.assertEquals(records[1], {
    process = "host:1", name = "AllReduce", comm = "0xc0", elements = 64, datatype = 7,
    op = 0, root = 0, ranks = 4, in_place = false, times = 5, first_line = 1, last_line = 9,
    first_op_count = 0, last_op_count = 8,
  })
  luaunit.assertEquals({ records[3].in_place, records[3].first_line }, { true, 11 })
end

function TestLogscan.test_selections()
  local scanner = scan(table.concat({
    P .. "AllReduce: 64 Bytes -> Algo RING proto LL channel{Lo..Hi}={0..3}",
    P .. "AllReduce: 64 Bytes -> Algo RING proto LL channel{Lo..Hi}={0..3}",
    P .. "64 Bytes -> Algo 1 proto 0 time 12.5",
    P .. "AllReduce [Symmetric]: 64 Bytes -> Kernel K nchannels 4 nthreads 512 nWorks 1",
    P .. "AllGather [Copy Engine]: 64 Bytes -> cudaMemcpyAsync",
  }, "\n"))
  local records = scanner:records("selection")
  luaunit.assertEquals(#records, 4)
  luaunit.assertEquals({ records[1].low, records[1].high, records[1].times }, { 0, 3, 2 })
  luaunit.assertEquals({ records[2].time_us, records[2].name }, { 12.5, nil })
  luaunit.assertEquals({ records[3].form, records[3].high, records[3].threads },
    { "symmetric", 3, 512 })
  luaunit.assertEquals({ records[4].form, records[4].algorithm },
    { "copy_engine", "cudaMemcpyAsync" })
end

function TestLogscan.test_connections_and_links()
  local scanner = scan(table.concat({
    P .. "Channel 00/0 : 0[0] -> 1[b000] via P2P/IPC",
    P .. "Channel 03/0 : 0[0] -> 1[b000] via P2P/IPC",
    P .. "Channel 00 : 1[1] -> 2[0] [send] via NET/IB/0/GDRDMA",
    P .. "Ring 01 : 3 -> 0 -> 1",
    P .. "Tree 0 : -1 -> 0 -> 1/2/-1",
  }, "\n"))
  local connections, links = scanner:records("connection"), scanner:records("link")
  luaunit.assertEquals({ #connections, #links }, { 2, 2 })
  luaunit.assertEquals({ connections[1].low, connections[1].high }, { 0, 3 })
  luaunit.assertEquals({ connections[2].direction, connections[2].via },
    { "send", "NET/IB/0/GDRDMA" })
  luaunit.assertEquals({ links[1].up, links[1].rank, links[1].down }, { 3, 0, { 1 } })
  luaunit.assertEquals({ links[2].kind, links[2].down }, { "tree", { 1, 2 } })
end

-- Every fixture, cut into pieces anywhere, tells the same as in one piece.
function TestLogscan.test_pieces()
  for _, name in ipairs({ "2.28-glued.log", "2.30-forms.log", "2.10-two-nodes.log" }) do
    local file <close> = assert(io.open("tests/fixtures/nccl/" .. name, "rb"))
    local text = file:read("a")
    local whole, wanted = scan(text)
    for _, size in ipairs({ 1, 7, 64, 1000 }) do
      local scanner, events = logscan.new(), {}
      local function listen(...) events[#events + 1] = { ... } end
      for at = 1, #text, size do scanner:feed(text:sub(at, at + size - 1), listen) end
      scanner:finish(listen)
      luaunit.assertEquals(events, wanted, name .. " by " .. size)
      luaunit.assertEquals(scanner:records("other"), whole:records("other"))
      luaunit.assertEquals(scanner:totals(), whole:totals())
    end
  end
end

function TestLogscan.test_limits()
  local long = P .. "Trees " .. ("x"):rep(1 << 17)
  local _, events = scan(long .. "\n" .. P .. "Trees\n")
  luaunit.assertEquals(events[1][6], "a line of more than 64 KiB, cut there")
  luaunit.assertEquals({ #events, events[3][2] }, { 3, "Trees" })
  luaunit.assertTrue(#events[2][2] < 1 << 16)
  local lines = {}
  for i = 1, 40000 do
    lines[i] = P .. ("%d Bytes -> Algo 1 proto 0 time 1"):format(i)
  end
  local scanner = scan(table.concat(lines, "\n"))
  luaunit.assertEquals(#scanner:records("selection"), 8192)
  luaunit.assertEquals(scanner:totals().overflow.selection, 40000 - 8192)
end

function TestLogscan.test_each()
  local ring = P .. "Ring %02d : 3 -> 0 -> 1\n"
  local scanner, events = scan(ring:format(1) .. ring:format(2), { each = true })
  luaunit.assertEquals({ events[1][1], events[1][6], events[2][6] }, { "link", 1, 1 })
  luaunit.assertEquals(scanner:record(1).times, 2)
  luaunit.assertEquals(scanner:thread(events[1][4]),
    { host = "host", pid = 1, tid = 2, device = 0, process = "host:1" })
end

function TestLogscan.test_misuse()
  local scanner = logscan.new()
  luaunit.assertErrorMsgContains("fed by its own callback", scanner.feed, scanner, "a\nb\n",
    function() scanner:feed("c\n", print) end)
  luaunit.assertErrorMsgContains("closed scanner", scanner.feed, scanner, "a\nb\n",
    function() scanner:close() end)
  luaunit.assertErrorMsgContains("closed scanner", scanner.totals, scanner)
  luaunit.assertEquals(tostring(scanner), "logscan.scanner (closed)")
  scanner:close()
  local other = logscan.new()
  luaunit.assertErrorMsgContains("function expected", other.feed, other, "x")
  luaunit.assertErrorMsgContains("there is no record", other.record, other, 1)
  luaunit.assertErrorMsgContains("oops", other.feed, other, "a\nb\n",
    function() error("oops") end)
  other:finish(print)
  luaunit.assertErrorMsgContains("has ended", other.feed, other, "x", print)
  luaunit.assertErrorMsgContains("option", logscan.new, { all = true })
end
