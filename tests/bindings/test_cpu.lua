--- nclua.cpu: the steps inside collectives, and steps that come late.
local cpu = require("nclua.cpu")
local cuda = require("nclua.cuda")
local luaunit = require("luaunit")
local nccl = require("nclua.nccl")
local process = require("nclua.process")

local eq, is_true = luaunit.assertEquals, luaunit.assertTrue

--- n ranks in this process: `enqueue(comm, send, recv, rank)` for each in one group.
local function traced(n, count, enqueue, options)
  local comms = assert(nccl.init_all(n))
  local send, recv = {}, {}
  for i, comm in ipairs(comms) do
    cuda.set_device(comm.device)
    send[i] = assert(cuda.buffer("f32", count)):fill(i)
    recv[i] = assert(cuda.buffer("f32", count * n))
  end
  local steps = assert(cpu.trace(function()
    nccl.group(function()
      for i, comm in ipairs(comms) do enqueue(comm, send[i], recv[i], i - 1) end
    end)
    for _, comm in ipairs(comms) do
      cuda.set_device(comm.device)
      cuda.synchronize()
    end
  end, options))
  for i, comm in ipairs(comms) do
    comm:close()
    send[i]:close()
    recv[i]:close()
  end
  cuda.set_device(0)
  table.sort(steps, function(a, b)
    if a.rank ~= b.rank then return a.rank < b.rank end
    if a.channel ~= b.channel then return a.channel < b.channel end
    return a.step < b.step
  end)
  return steps
end

local function all_reduce(comm, send, recv)
  comm:all_reduce(send, recv:slice(1, send.count), "sum")
end

local function of_rank(steps, rank, key)
  local list = {}
  for _, step in ipairs(steps) do
    if step.rank == rank then list[#list + 1] = step[key] end
  end
  return list
end

local function bytes_reduced(steps)
  local sum = 0
  for _, step in ipairs(steps) do
    if step.kind:find("reduce") then sum = sum + step.bytes * #step.from end
  end
  return sum
end

TestCpu = {}

function TestCpu.tearDown()
  assert(cpu.delay())
end

function TestCpu.test_ring_all_gather()
  local steps = traced(3, 8, function(comm, send, recv) comm:all_gather(send, recv) end)
  eq(#steps, 9)
  eq(of_rank(steps, 1, "kind"), { "copy_send", "recv_copy_send", "recv" })
  eq(of_rank(steps, 1, "offset"), { 32, 0, 64 })
  eq(of_rank(steps, 1, "from"), { {}, { 0 }, { 0 } })
  eq(of_rank(steps, 1, "to"), { { 2 }, { 2 }, {} })
  eq(of_rank(steps, 2, "step"), { 0, 1, 2 })
  for _, step in ipairs(steps) do
    eq({ step.bytes, step.collective, step.algorithm, step.call, step.channel },
      { 32, "all_gather", "Ring", 0, 0 })
    is_true(step.begin_ns <= step.end_ns and step.wait_ns <= step.end_ns - step.begin_ns)
  end
end

--- Whatever the algorithm: each element is added n - 1 times.
function TestCpu.test_bytes_of_an_all_reduce()
  for n = 2, 5 do
    local steps = traced(n, 1000, all_reduce)
    eq(bytes_reduced(steps), (n - 1) * 4000, n .. " ranks")
    eq(steps.lost, 0)
  end
end

function TestCpu.test_limit()
  local steps = traced(3, 8, all_reduce, { limit = 2 })
  eq(#steps, 2)
  is_true(steps.lost > 0)
end

function TestCpu.test_send_and_receive()
  local steps = traced(2, 8, function(comm, send, recv, rank)
    if rank == 0 then comm:send(send, 1) else comm:recv(recv:slice(1, 8), 0) end
  end)
  eq({ #steps, steps[1].kind, steps[2].kind }, { 2, "send", "recv" })
  eq({ steps[1].to, steps[2].from, steps[1].algorithm }, { { 1 }, { 0 }, nil })
  eq({ steps[1].bytes, steps[2].bytes, steps[2].offset }, { 32, 32, 0 })
end

function TestCpu.test_delay()
  assert(cpu.delay({ { rank = 1, step = 1, us = 20000 } }))
  local steps = traced(3, 8, function(comm, send, recv) comm:all_gather(send, recv) end)
  eq(of_rank(steps, 1, "delay_ns"), { 0, 20000000, 0 })
  eq(of_rank(steps, 0, "delay_ns"), { 0, 0, 0 })
  local late = of_rank(steps, 2, "wait_ns")
  is_true(late[3] > 10000000, "rank 2 waits for the chunk that rank 1 passes on late")
end

function TestCpu.test_delay_of_every_step()
  assert(cpu.delay({ { rank = 0, us = 100 }, { us = 50, channel = 0, call = 0 } }))
  local steps = traced(2, 8, all_reduce)
  for _, step in ipairs(steps) do
    eq(step.delay_ns, step.rank == 0 and 150000 or 50000)
  end
end

function TestCpu.test_counters()
  local comms = assert(nccl.init_all(2))
  local x = {}
  for i, comm in ipairs(comms) do
    cuda.set_device(comm.device)
    x[i] = assert(cuda.buffer("f32", 1000)):fill(1)
  end
  eq(assert(cpu.counters(comms[1])).bytes_sent, 0)
  nccl.group(function()
    for i, comm in ipairs(comms) do comm:all_reduce(x[i], x[i], "sum") end
  end)
  for _, comm in ipairs(comms) do
    cuda.set_device(comm.device)
    cuda.synchronize()
  end
  local a, b = cpu.counters(comms[1]), cpu.counters(comms[2])
  eq({ a.bytes_sent + b.bytes_sent, a.bytes_received + b.bytes_received,
    a.bytes_reduced + b.bytes_reduced }, { 8000, 8000, 4000 })
  is_true(a.wire_sent >= a.bytes_sent and a.slots_sent > 0)
  for i, comm in ipairs(comms) do
    comm:close()
    x[i]:close()
  end
  luaunit.assertErrorMsgContains("closed", cpu.counters, comms[1])
  luaunit.assertErrorMsgContains("nccl.comm", cpu.counters, 3)
  cuda.set_device(0)
end

function TestCpu.test_start_and_stop()
  eq(#assert(cpu.stop()), 0)
  is_true(cpu.start())
  local _, message, code = cpu.start()
  eq(code, "EBUSY", message)
  eq({ select(3, cpu.trace(print)) }, { "EBUSY" })
  eq(assert(cpu.stop()).lost, 0)
end

function TestCpu.test_error_in_fn()
  luaunit.assertErrorMsgContains("oops", cpu.trace, function() error("oops") end)
  is_true(cpu.start())
  cpu.stop()
end

function TestCpu.test_arguments()
  local wrong = luaunit.assertErrorMsgContains
  wrong("function expected", cpu.trace)
  wrong("limit", cpu.start, { limit = 0 })
  wrong("table expected", cpu.delay, 3)
  wrong("us", cpu.delay, { {} })
  wrong("ranks", cpu.delay, { { us = 3, ranks = 3 } })
  wrong("step", cpu.delay, { { us = 3, step = -2 } })
  local many = {}
  for i = 1, 65 do many[i] = { us = 1 } end
  eq({ select(3, cpu.delay(many)) }, { "EINVAL" })
end

local SCRIPT = [[
local comm, message = require("nclua.nccl").comm({
  id = require("nclua.nccl").unique_id(), rank = 0, count = 1 })
io.write(message or "ready")
]]

function TestCpu.test_environment()
  for text, answer in pairs({
    ["1:0:500"] = "ready", ["1:0:500;*:2:3:0:7"] = "ready", [""] = "ready",
    ["1:0"] = "expected", ["1:0:*"] = "expected", ["1:0:5:1:2:3"] = "expected",
    ["1:0:5x"] = "expected", ["-1:0:5"] = "expected",
  }) do
    local result = process.run({ os.getenv("NCLUA"), "-e", SCRIPT }, {
      env = { NCLUA_CPU_DELAY = text, NCLUA_BACKEND = "cpu" } })
    luaunit.assertStrContains(result.stdout, answer, false, false, text .. result.stderr)
  end
end
