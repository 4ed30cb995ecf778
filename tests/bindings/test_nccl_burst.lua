--- comm:burst: calls written down once and made in C; and stream:spin, which holds them.
local cuda = require("nclua.cuda")
local kernels = require("kernels")
local luaunit = require("luaunit")
local nccl = require("nclua.nccl")

local function new_comm()
  return assert(nccl.init_all(1))[1]
end

local function new_stream()
  return assert(cuda.stream())
end

local function ramp(count)
  return assert(cuda.buffer("f32", count)):pattern()
end

TestBurst = {}

function TestBurst.test_it_makes_the_calls_in_order_and_goes_round()
  local comm <close> = new_comm()
  local stream <close> = new_stream()
  local x, y = ramp(4), assert(cuda.buffer("f32", 4)):fill(-1)
  local burst = comm:burst(function()
    for i = 1, 4 do
      luaunit.assertEquals(comm:all_reduce(x:slice(i, 1), y:slice(i, 1), "sum"), comm)
    end
  end)
  luaunit.assertEquals({ burst.count, burst.group }, { 4, 0 })
  luaunit.assertEquals(y:to_table(), { -1.0, -1.0, -1.0, -1.0 }, "nothing was called yet")
  luaunit.assertEquals(burst:enqueue(3, stream), burst)
  stream:sync()
  luaunit.assertEquals(y:to_table(), { 0.0, 1.0, 2.0, -1.0 })
  x:fill(7)
  burst:enqueue(2, stream) -- the fourth and the first
  stream:sync()
  luaunit.assertEquals(y:to_table(), { 7.0, 1.0, 2.0, 7.0 })
  x:fill(8)
  burst:rewind():enqueue(1)
  luaunit.assertEquals(y:to_table(), { 8.0, 1.0, 2.0, 7.0 })
end

function TestBurst.test_time()
  luaunit.skipIf(not kernels.are_there(), "no kernels without NVRTC: nothing to wait for")
  local comm <close> = new_comm()
  local stream <close> = new_stream()
  local x, y = ramp(1000), assert(cuda.buffer("f32", 1000)):fill(-1)
  local burst = comm:burst(function() comm:all_reduce(x, y, "max") end)
  stream:spin(20000)
  local enqueue_us, wall_us = burst:time(5, stream)
  luaunit.assertTrue(stream:query())
  luaunit.assertTrue(0 < enqueue_us and enqueue_us < wall_us)
  luaunit.assertTrue(wall_us > 10000, "it waited for what was enqueued before: " .. wall_us)
  luaunit.assertEquals(y:compare(x), 0)
  luaunit.assertErrorMsgContains("while a stream is being captured", function()
    stream:capture(function() burst:time(1, stream) end)
  end)
end

-- Each kind of call, and its own arguments.
local KINDS = {
  all_gather = function(c, x, y) c:all_gather(x, y) end,
  all_reduce = function(c, x, y) c:all_reduce(x, y, "sum") end,
  all_to_all = function(c, x, y) c:all_to_all(x, y) end,
  broadcast = function(c, x, y) c:broadcast(x, y, 0) end,
  gather = function(c, x, y) c:gather(x, y, 0) end,
  reduce = function(c, x, y) c:reduce(x, y, "sum", 0) end,
  reduce_scatter = function(c, x, y) c:reduce_scatter(x, y, "sum") end,
  scatter = function(c, x, y) c:scatter(x, y, 0) end,
}

function TestBurst.test_every_collective()
  local comm <close> = new_comm()
  local stream <close> = new_stream()
  local x = ramp(10)
  for name, call in pairs(KINDS) do
    local y = assert(cuda.buffer("f32", 10)):fill(-1)
    comm:burst(function() call(comm, x, y) end):enqueue(1, stream)
    stream:sync()
    luaunit.assertEquals(y:compare(x), 0, name)
  end
end

function TestBurst.test_groups()
  local comm <close> = new_comm()
  local stream <close> = new_stream()
  local x, y = ramp(10), assert(cuda.buffer("f32", 10)):fill(-1)
  local burst = comm:burst(function() -- which would wait for ever but in a group
    comm:send(x, 0)
    comm:recv(y, 0)
  end, { group = 2 })
  luaunit.assertEquals(burst.group, 2)
  burst:enqueue(6, stream)
  stream:sync()
  luaunit.assertEquals(y:compare(x), 0)
  luaunit.assertErrorMsgContains("expected a multiple of 2", burst.enqueue, burst, 3)
  luaunit.assertErrorMsgContains("expected a multiple of 3 calls, one group, got 2",
    function()
      comm:burst(function() comm:send(x, 0):recv(y, 0) end, { group = 3 })
    end)
end

function TestBurst.test_in_a_graph()
  local comm <close> = new_comm()
  local stream <close> = new_stream()
  local x, y = ramp(10), assert(cuda.buffer("f32", 10)):fill(-1)
  local burst = comm:burst(function() comm:all_reduce(x, y, "sum") end)
  local graph = assert(stream:capture(function() burst:enqueue(3, stream) end))
  luaunit.assertEquals(y:get(10), -1.0)
  graph:launch(stream)
  stream:sync()
  luaunit.assertEquals(y:compare(x), 0)
  x:close() -- it took part
  luaunit.assertErrorMsgContains("closed", graph.launch, graph, stream)
end

function TestBurst.test_arguments_are_checked_when_written_down()
  local comm <close> = new_comm()
  local x, y = ramp(10), ramp(9)
  luaunit.assertErrorMsgContains("recv: expected 10 elements, got 9", comm.burst, comm,
    function() comm:all_reduce(x, y, "sum") end)
  luaunit.assertErrorMsgContains("made no call", comm.burst, comm, function() end)
  luaunit.assertErrorMsgContains("function expected", comm.burst, comm)
  luaunit.assertErrorMsgContains("'groop'", comm.burst, comm, print, { groop = 1 })
  luaunit.assertErrorMsgContains("oh", comm.burst, comm, function() error("oh") end)
  comm:all_reduce(x, x, "sum") -- no burst is left that would take it
  comm:burst(function() comm:all_reduce(x, x, "sum") end):enqueue(1)
  luaunit.assertErrorMsgContains("not inside a burst", comm.burst, comm, function()
    nccl.group(function() comm:all_reduce(x, x, "sum") end)
  end)
  luaunit.assertErrorMsgContains("not inside another burst", comm.burst, comm, function()
    comm:burst(function() comm:all_reduce(x, x, "sum") end)
  end)
  luaunit.assertErrorMsgContains("not inside nccl.group", nccl.group, function()
    comm:burst(function() comm:all_reduce(x, x, "sum") end)
  end)
end

function TestBurst.test_another_communicator()
  local one <close> = new_comm()
  local two <close> = new_comm()
  local x = ramp(10)
  luaunit.assertErrorMsgContains("another communicator", one.burst, one, function()
    two:all_reduce(x, x, "sum")
  end)
end

function TestBurst.test_enqueue_arguments()
  local comm <close> = new_comm()
  local stream <close> = new_stream()
  local x = ramp(10)
  local burst = comm:burst(function() comm:all_reduce(x, x, "sum") end)
  luaunit.assertErrorMsgContains("expected", burst.enqueue, burst, 0, stream)
  luaunit.assertErrorMsgContains("cuda.stream expected", burst.enqueue, burst, 1, x)
  luaunit.assertErrorMsgContains("not inside nccl.group", nccl.group, function()
    burst:enqueue(1, stream)
  end)
  luaunit.assertErrorMsgContains("not inside comm:burst", comm.burst, comm, function()
    burst:enqueue(1, stream)
  end)
  stream:close()
  luaunit.assertErrorMsgContains("closed stream", burst.enqueue, burst, 1, stream)
end

function TestBurst.test_what_it_uses_may_be_closed_first()
  local other <close> = new_comm()
  local comm = new_comm()
  local x, y = ramp(10), ramp(10)
  local part = x:slice(1, 5)
  local burst = comm:burst(function() comm:all_reduce(part, part, "sum") end)
  local second = comm:burst(function() comm:all_reduce(y, y, "sum") end)
  part:close() -- its memory is still there
  burst:enqueue(1)
  x:close()
  luaunit.assertErrorMsgContains("a buffer of its calls is closed", burst.enqueue, burst, 1)
  comm:close()
  luaunit.assertErrorMsgContains("closed communicator", second.enqueue, second, 1)
  luaunit.assertErrorMsgContains("closed communicator", second.time, second, 1)
  other:all_reduce(y, y, "sum")
end

function TestBurst.test_operators()
  local comm <close> = new_comm()
  local stream <close> = new_stream()
  local x, y = ramp(10), assert(cuda.buffer("f32", 10))
  local op = assert(comm:pre_mul_sum(3, "f32"))
  local burst = comm:burst(function() comm:all_reduce(x, y, op) end)
  op = nil -- kept by the burst
  collectgarbage()
  collectgarbage()
  burst:enqueue(1, stream)
  stream:sync()
  luaunit.assertEquals({ op, y:get(10) }, { nil, 27.0 })
end

function TestBurst.test_handle()
  local comm <close> = new_comm()
  local x = ramp(10)
  local burst = comm:burst(function()
    comm:all_reduce(x, x, "sum"):all_reduce(x, x, "sum")
  end)
  luaunit.assertEquals(tostring(burst), "nccl.burst of 2 calls")
  burst:close()
  burst:close()
  luaunit.assertEquals(tostring(burst), "nccl.burst (closed)")
  luaunit.assertErrorMsgContains("closed burst", burst.enqueue, burst, 1)
  luaunit.assertErrorMsgContains("nccl.burst expected", burst.enqueue, comm, 1)
  for _ = 1, 100 do -- collected whenever
    comm:burst(function() comm:all_reduce(ramp(3), ramp(3), "sum") end):enqueue(1)
    collectgarbage("step")
  end
end

TestSpin = {}

function TestSpin.test_it_holds_what_comes_after()
  luaunit.skipIf(not kernels.are_there(), "no kernels without NVRTC")
  local stream <close> = new_stream()
  local x = assert(cuda.buffer("i32", 1))
  local us = cuda.time(stream, function()
    luaunit.assertEquals(stream:spin(3000), stream)
    x:fill(1, stream)
    luaunit.assertFalse(stream:query())
  end)
  luaunit.assertTrue(us >= 2900, us)
  luaunit.assertErrorMsgContains("expected", stream.spin, stream, -1)
  luaunit.assertErrorMsgContains("expected", stream.spin, stream, 1 << 40)
  stream:close()
  luaunit.assertErrorMsgContains("closed stream", stream.spin, stream, 1)
end
