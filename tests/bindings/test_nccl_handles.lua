--- nclua.nccl: handles used, closed and collected in the wrong order, work in flight.
local cuda = require("nclua.cuda")
local luaunit = require("luaunit")
local nccl = require("nclua.nccl")
local world = require("bindings.nccl_world")

local RANKS = math.min(3, #assert(cuda.devices()))

local function raises(text, f, ...)
  luaunit.assertErrorMsgContains(text, f, ...)
end

local function lonely()
  return assert(nccl.init_all(1))[1]
end

local function nccl_buffer()
  return assert(cuda.buffer("f32", 1024, { kind = "nccl" })):fill(1)
end

--- A handle, and what it lives on.
local MAKE = {
  ["nccl.comm"] = function() return lonely() end,
  ["nccl.op"] = function()
    local comm = lonely()
    return assert(comm:pre_mul_sum(2, "f32")), comm
  end,
  ["nccl.registration"] = function()
    local comm, buffer = lonely(), nccl_buffer()
    return assert(comm:register(buffer)), comm, buffer
  end,
  ["nccl.window"] = function()
    local comm, buffer = lonely(), nccl_buffer()
    return assert(comm:window(buffer)), comm, buffer
  end,
}

--- A GPU may have no symmetric memory, and NCCL gives a lonely rank none.
do
  local comm <close> = lonely()
  local _, message, code = comm:window(nccl_buffer())
  if code == "ENOTSUP" then
    print("skipped: nccl.window: " .. message)
    MAKE["nccl.window"] = nil
  end
end

local USES = {
  "all_gather", "all_reduce", "all_to_all", "async_error", "broadcast", "finalize",
  "gather", "pre_mul_sum", "ready", "recv", "reduce", "reduce_scatter", "register",
  "scatter", "send", "shrink", "split", "window",
}

--- The five tests of every handle type.
TestHandles = {}

function TestHandles.test_use_after_close()
  for name, make in pairs(MAKE) do
    local handle, comm = make()
    handle:close()
    luaunit.assertStrContains(tostring(handle), "closed")
    luaunit.assertStrContains(tostring(handle), name)
    if name == "nccl.comm" then
      for _, use in ipairs(USES) do
        raises("attempt to use a closed communicator", handle[use], handle)
      end
      luaunit.assertEquals({ handle.rank, handle.count }, { 0, 1 }) -- facts, not uses
    else
      comm:close()
    end
  end
end

function TestHandles.test_close_twice()
  for name, make in pairs(MAKE) do
    local handle, comm = make()
    for _ = 1, 3 do handle:close() end
    do local _ <close> = handle end
    if comm then comm:close() end
    if name == "nccl.comm" then handle:abort() end
  end
end

function TestHandles.test_child_after_parent()
  for name, make in pairs(MAKE) do
    local handle, comm, buffer = make()
    if comm then
      comm:close()
      luaunit.assertStrContains(tostring(handle), "closed", name)
      handle:close()
    end
    if buffer then buffer:close() end
  end
  local first, _, _ = MAKE["nccl.op"]()
  collectgarbage() -- the communicator is alive as long as its operator
  luaunit.assertNotStrContains(tostring(first), "closed")
end

function TestHandles.test_collected_while_in_use()
  local stream <close> = cuda.stream()
  local x <close> = cuda.buffer("f32", 1 << 16):fill(1)
  for _, make in pairs(MAKE) do
    for _ = 1, cuda.backend() == "cpu" and 20 or 3 do -- a GPU's take a second each
      make()
      lonely():all_reduce(x, x, "sum", stream)
    end
    collectgarbage()
  end
  stream:sync()
  luaunit.assertEquals({ x:compare(1) }, { 0 })
end

function TestHandles.test_wrong_self()
  for name, make in pairs(MAKE) do
    local handle <close>, comm = make()
    luaunit.assertEquals(getmetatable(handle), "protected")
    for _, wrong in ipairs({ 1, "x", {}, io.stdout, print }) do
      raises(name .. " expected", handle.close, wrong)
      for _, use in ipairs(name == "nccl.comm" and USES or {}) do
        raises(name .. " expected", handle[use], wrong)
      end
    end
    if comm then comm:close() end
  end
end

--- Work in flight, and the ends of communicators.
TestEnds = {}

--- The last rank is late, so what the others enqueued waits.
local function enqueue(w, x, count)
  for _ = 1, count do
    nccl.group(function()
      for i, comm in ipairs(w.comms) do comm:all_reduce(x[i], x[i], "max", w.streams[i]) end
    end)
  end
end

function TestEnds.test_close_drains()
  local w <close> = world.open(RANKS)
  local x = w:buffers("i32", 50000, function(r) return r end)
  enqueue(w, x, 20)
  for _, comm in ipairs(w.comms) do comm:close() end
  w:check(x, function() return RANKS - 1 end, "after close")
end

function TestEnds.test_finalize()
  local comm = lonely()
  local x <close> = cuda.buffer("i32", 5):fill(1)
  luaunit.assertIs(comm:all_reduce(x, x, "sum"):finalize(), comm)
  raises("finalized communicator", comm.all_reduce, comm, x, x, "sum")
  raises("finalized communicator", comm.finalize, comm)
  comm:close()
  raises("closed communicator", comm.finalize, comm)
end

--- Where a call of one rank alone must not block the script: NCCL makes its connections in
--- the first calls, and for those it waits for the other ranks.
local function connected(ranks)
  local w = world.open(ranks)
  local x, y = w:buffers("i32", 1000), w:buffers("i32", 1000)
  enqueue(w, x, 1)
  w:each(function(r, comm, s)
    comm:send(x[r + 1], (r + 1) % ranks, s):recv(y[r + 1], (r - 1) % ranks, s)
  end)
  return w, x
end

--- Nobody answers rank 0's calls: only an abort can end it.
function TestEnds.test_abort_ends_what_waits()
  luaunit.skipIf(RANKS < 2, "needs two devices")
  local w, x = connected(RANKS)
  local comm = w.comms[1]
  nccl.group(function()
    comm:recv(x[1], RANKS - 1, w.streams[1])
  end)
  comm:abort()
  comm:abort()
  w.streams[1]:sync()
  raises("closed communicator", comm.all_reduce, comm, x[1], x[1], "sum")
  for i = 2, RANKS do w.comms[i]:abort() end
  w:__close()
end

--- An error that reaches <close> must not wait for ranks that will never come.
function TestEnds.test_error_aborts()
  luaunit.skipIf(RANKS < 2, "needs two devices")
  local w, x = connected(RANKS)
  raises("my own error", function()
    local comm <close> = w.comms[1]
    nccl.group(function() comm:recv(x[1], RANKS - 1, w.streams[1]) end)
    error("my own error")
  end)
  luaunit.assertStrContains(tostring(w.comms[1]), "closed")
  for i = 2, RANKS do w.comms[i]:abort() end
  w:__close()
end

function TestEnds.test_collection_aborts()
  luaunit.skipIf(RANKS < 2, "needs two devices")
  local w, x = connected(RANKS)
  local streams = w.streams
  nccl.group(function() w.comms[1]:recv(x[1], RANKS - 1, streams[1]) end)
  w.comms, w = nil, nil
  collectgarbage()
  collectgarbage()
  streams[1]:sync()
end

function TestEnds.test_buffers_closed_in_flight()
  local w <close> = world.open(RANKS)
  local result = w:buffers("i32", 100000)
  for _ = 1, 10 do
    local x = w:buffers("i32", 100000, function(r) return r + 1 end)
    nccl.group(function()
      for i, comm in ipairs(w.comms) do
        comm:all_reduce(x[i], result[i], "max", w.streams[i])
        if i % 2 == 0 then x[i]:close() end
      end
    end)
    for i = 1, RANKS do x[i]:close() end
  end
  for i = 1, RANKS do luaunit.assertEquals({ result[i]:compare(RANKS) }, { 0 }) end
end

TestGraphs = {}

local function capture(comm, stream, x)
  return assert(stream:capture(function()
    for _ = 1, 3 do comm:all_reduce(x, x, "sum", stream) end
  end))
end

function TestGraphs.test_launch()
  local comm <close> = lonely()
  local op <close> = assert(comm:pre_mul_sum(2, "i32"))
  local stream <close> = cuda.stream()
  local x <close> = cuda.buffer("i32", 100):fill(1)
  local graph <close> = assert(stream:capture(function()
    comm:all_reduce(x, x, op, stream)
  end))
  for _ = 1, 5 do graph:launch(stream) end
  stream:sync()
  luaunit.assertEquals({ x:compare(32) }, { 0 })
end

function TestGraphs.test_communicator_closes_its_graphs()
  local comm = lonely()
  local stream <close> = cuda.stream()
  local x <close> = cuda.buffer("i32", 100):fill(1)
  local graph = capture(comm, stream, x)
  graph:launch(stream)
  comm:close()
  raises("closed graph", graph.launch, graph, stream)
  stream:sync()
end

function TestGraphs.test_graph_keeps_communicator()
  local stream <close> = cuda.stream()
  local x <close> = cuda.buffer("i32", 100):fill(1)
  local graph <close> = capture(lonely(), stream, x)
  collectgarbage()
  collectgarbage()
  graph:launch(stream)
  stream:sync()
  luaunit.assertEquals({ x:compare(1) }, { 0 })
end

function TestGraphs.test_closing_in_mid_capture()
  local comm = lonely()
  local stream <close> = cuda.stream()
  local x <close> = cuda.buffer("i32", 100):fill(1)
  raises("captured", stream.capture, stream, function()
    comm:all_reduce(x, x, "sum", stream)
    comm:close()
  end)
  raises("captured", stream.capture, stream, function() comm:abort() end)
  comm:all_reduce(x, x, "sum", stream)
  raises("my own error", stream.capture, stream, function()
    local same <close> = comm
    same:all_reduce(x, x, "sum", stream)
    error("my own error")
  end)
  raises("closed communicator", comm.all_reduce, comm, x, x, "sum", stream)
  comm:close()
  comm:close()
  stream:sync()
end

function TestGraphs.test_several_ranks()
  local w <close> = world.open(RANKS)
  luaunit.skipIf(RANKS < 2, "needs two devices")
  local x = w:buffers("i32", 1000, function(r) return r end)
  enqueue(w, x, 1)
  -- One capture a rank: its call is a group of its own, as it would be in its own process.
  local graphs = {}
  for i, comm in ipairs(w.comms) do
    cuda.set_device(i - 1)
    graphs[i] = w.streams[i]:capture(function()
      nccl.group(function() comm:all_reduce(x[i], x[i], "max", w.streams[i]) end)
    end)
  end
  cuda.set_device(0)
  for i = 1, RANKS do graphs[i]:launch(w.streams[i]) end
  for i = 1, RANKS do w.streams[i]:sync() end
  w:check(x, function() return RANKS - 1 end, "graphs")
end

TestRegistrations = {}

function TestRegistrations.test_buffer_goes_first()
  local comm <close> = lonely()
  local stream <close> = cuda.stream()
  for _, make in ipairs({ comm.register, MAKE["nccl.window"] and comm.window }) do
    local x = nccl_buffer()
    local handle = assert(make(comm, x))
    local part = assert(comm:register(x:slice(1, 10)))
    comm:all_reduce(x, x, "sum", stream)
    x:close()
    stream:sync()
    handle:close()
    part:close()
  end
end

function TestRegistrations.test_many_and_forgotten()
  local comm = lonely()
  local x = nccl_buffer()
  for _ = 1, 50 do
    assert(comm:register(x))
    comm:all_reduce(x, x, "sum")
  end
  collectgarbage()
  comm:close()
  x:close()
end

function TestRegistrations.test_closed_in_group_and_capture()
  local comm <close> = lonely()
  local stream <close> = cuda.stream()
  local x <close> = nccl_buffer()
  local first, second = assert(comm:register(x)), assert(comm:register(x))
  nccl.group(function()
    comm:all_reduce(x, x, "sum", stream)
    first:close()
    raises("not inside nccl.group", comm.window, comm, x)
  end)
  local graph <close> = assert(stream:capture(function()
    comm:all_reduce(x, x, "sum", stream)
    second:close()
  end))
  graph:launch(stream)
  stream:sync()
end

--- A call that is made again with the same arguments is not checked again: only while
--- nothing that it was checked for can have changed.
TestRepeated = {}

function TestRepeated.test_changes_are_seen()
  local comm <close> = assert(nccl.init_all(1))[1]
  local x, stream = assert(cuda.buffer("f32", 8)), assert(cuda.stream())
  local function again(...) return pcall(comm.all_reduce, comm, ...) end
  luaunit.assertFalse(again(nil, nil, "sum"))
  for _ = 1, 3 do luaunit.assertTrue(again(x, x, "sum", stream)) end
  luaunit.assertTrue(again(x, x, "max", stream))
  luaunit.assertFalse(again(x, x, "sun", stream))
  luaunit.assertFalse(again(x, x, nil, stream))
  luaunit.assertFalse(again(x, x, 5, stream))
  luaunit.assertTrue(again(x, x, "max"))
  luaunit.assertFalse(again(x, x, "max", 1))
  luaunit.assertFalse(again(x, x, "max", {}))
  luaunit.assertTrue(again(x, x, "sum", stream))
  stream:close()
  luaunit.assertFalse(again(x, x, "sum", stream))
  local slice = x:slice(1, 4)
  luaunit.assertTrue(again(slice, slice, "sum"))
  luaunit.assertTrue(again(slice, slice, "sum"))
  x:close()
  luaunit.assertFalse(again(slice, slice, "sum"))
  local y <close> = assert(cuda.buffer("f32", 8)):fill(2)
  for _ = 1, 2 do luaunit.assertTrue(again(y, y, "sum")) end
  local graph_stream <close> = assert(cuda.stream())
  local graph <close> = assert(graph_stream:capture(function()
    assert(again(y, y, "sum", graph_stream))
  end))
  graph:launch(graph_stream)
  graph_stream:sync()
  luaunit.assertTrue(again(y, y, "sum", graph_stream))
  cuda.synchronize()
  comm:close()
  luaunit.assertFalse(again(y, y, "sum", graph_stream))
end
