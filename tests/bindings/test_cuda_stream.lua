--- nclua.cuda, on either backend: streams, events, timing, graphs.
local cuda = require("nclua.cuda")
local kernels = require("kernels")
local luaunit = require("luaunit")

local function raises(text, f, ...)
  luaunit.assertErrorMsgContains(text, f, ...)
end

--- A graph that holds one fill of `x`.
local function fill_graph(stream, x, value)
  return assert(stream:capture(function() x:fill(value, stream) end))
end

TestStream = {}

function TestStream.test_order()
  local x <close> = cuda.buffer("i32", 1000)
  local stream <close> = assert(cuda.stream())
  for i = 1, 200 do x:fill(i, stream) end
  luaunit.assertIs(stream:sync(), stream)
  luaunit.assertTrue(stream:query())
  luaunit.assertEquals({ x:compare(200) }, { 0 })
end

function TestStream.test_reading_waits_for_all_streams()
  local stream <close> = cuda.stream()
  for i = 1, 50 do
    local x <close> = cuda.buffer("i32", 50000)
    x:fill(i, stream)
    luaunit.assertEquals(x:get(50000), i)
  end
end

function TestStream.test_priority()
  local high <close> = assert(cuda.stream({ priority = "high" }))
  luaunit.assertEquals(high.device, 0)
  raises("'normal' or 'high'", cuda.stream, { priority = "low" })
  raises("table expected", cuda.stream, 1)
end

function TestStream.test_wait_for_event()
  local first <close> = cuda.stream()
  local second <close> = cuda.stream()
  local event <close> = cuda.event()
  local x <close> = cuda.buffer("i32", 100000)
  local y <close> = cuda.buffer("i32", 100000)
  for i = 1, 30 do
    x:fill(i, first)
    event:record(first)
    second:wait(event)
    y:copy_from(x, second)
    second:sync()
    luaunit.assertEquals({ y:compare(i) }, { 0 })
    first:wait(event:record(second))
  end
end

function TestStream.test_query_ends_true()
  local stream <close> = cuda.stream()
  local x <close> = cuda.buffer("i32", 1 << 20)
  x:fill(1, stream)
  local limit = cuda.now_ns() + 20 * 10 ^ 9
  while not stream:query() do luaunit.assertTrue(cuda.now_ns() < limit) end
end

TestEvent = {}

function TestEvent.test_elapsed()
  local stream <close> = cuda.stream()
  local start <close> = assert(cuda.event())
  local stop <close> = assert(cuda.event())
  local x <close> = cuda.buffer("f32", 1 << 20)
  start:record(stream)
  x:fill(1, stream)
  luaunit.assertIs(stop:record(stream), stop)
  luaunit.assertIs(stop:sync(), stop)
  luaunit.assertTrue(start:query() and stop:query())
  local us = start:elapsed_us(stop)
  luaunit.assertEquals(math.type(us), "float")
  luaunit.assertTrue(us > 0 and us < 10 ^ 7)
end

function TestEvent.test_wrong_use()
  local a <close> = cuda.event()
  local b <close> = cuda.event({ timing = false })
  raises("never recorded", a.elapsed_us, a, a)
  a:record()
  b:record():sync()
  raises("without timing", a.elapsed_us, a, b)
  raises("cuda.event expected", a.elapsed_us, a, 1)
  raises("option 'timing': expected a boolean", cuda.event, { timing = 1 })
  luaunit.assertEquals(b.timing, false)
end

TestTime = {}

function TestTime.test_time()
  local stream <close> = cuda.stream()
  local x <close> = cuda.buffer("f32", 1 << 20)
  for _, s in ipairs({ stream, false }) do
    s = s or nil
    local us = cuda.time(s, function() x:fill(1, s) end)
    luaunit.assertEquals(math.type(us), "float")
    luaunit.assertTrue(us > 0 and us < 10 ^ 7)
  end
  luaunit.assertTrue(cuda.time(stream, function() end) >= 0)
end

function TestTime.test_nested()
  local stream <close> = cuda.stream()
  local x <close> = cuda.buffer("f32", 1 << 16)
  local inner
  local outer = cuda.time(stream, function()
    inner = cuda.time(stream, function() x:fill(1, stream) end)
    x:fill(2, stream)
  end)
  luaunit.assertTrue(outer >= inner)
end

function TestTime.test_error_leaves_nothing_broken()
  local stream <close> = cuda.stream()
  local object = {}
  for _ = 1, 40 do -- more than the pool of events holds
    local ok, message = pcall(cuda.time, stream, function() error(object) end)
    luaunit.assertFalse(ok)
    luaunit.assertIs(message, object)
  end
  luaunit.assertTrue(cuda.time(stream, function() end) >= 0)
end

function TestTime.test_stream_closed_inside()
  local stream = cuda.stream()
  raises("closed the stream", cuda.time, stream, function() stream:close() end)
  raises("closed stream", cuda.time, stream, function() end)
  raises("function expected", cuda.time, nil, 1)
end

TestGraph = {}

function TestGraph.test_launch()
  local stream <close> = cuda.stream()
  local x <close> = cuda.buffer("i32", 100):fill(0)
  local y <close> = cuda.buffer("i32", 100):fill(0)
  local seen
  local has_kernels = kernels.are_there()
  local graph <close> = assert(stream:capture(function(s)
    seen = s
    x:fill(3, stream)
    x:set(7, 4, stream)
    y:copy_from(x, stream)
    if has_kernels then
      y:slice(1, 2):pattern(nil, stream)
    else
      print("no kernels without NVRTC: no pattern is captured")
      y:set(1, 0, stream)
      y:set(2, 1, stream)
    end
  end))
  luaunit.assertIs(seen, stream)
  luaunit.assertEquals({ y:compare(0) }, { 0 }) -- captured, not run
  for _ = 1, 3 do
    luaunit.assertIs(graph:launch(stream), graph)
    luaunit.assertEquals(y:to_table(1, 7), { 0, 1, 3, 3, 3, 3, 4 })
    y:fill(0)
  end
  graph:launch()
  luaunit.assertEquals(y:get(7), 4)
end

function TestGraph.test_empty_and_forked()
  local stream <close> = cuda.stream()
  local other <close> = cuda.stream()
  local fork <close> = cuda.event()
  local join <close> = cuda.event()
  local x <close> = cuda.buffer("i32", 9):fill(0)
  local y <close> = cuda.buffer("i32", 9):fill(0)
  local empty <close> = assert(stream:capture(function() end))
  empty:launch(stream)
  local graph <close> = assert(stream:capture(function()
    fork:record(stream)
    other:wait(fork)
    x:fill(1, stream)
    y:fill(2, other)
    stream:wait(join:record(other))
  end))
  graph:launch(stream)
  luaunit.assertEquals({ x:compare(1) }, { 0 })
  luaunit.assertEquals({ y:compare(2) }, { 0 })
end

function TestGraph.test_error_inside()
  local stream <close> = cuda.stream()
  local x <close> = cuda.buffer("i32", 4):fill(1)
  local object = {}
  local ok, message = pcall(stream.capture, stream, function()
    x:fill(2, stream)
    error(object)
  end)
  luaunit.assertFalse(ok)
  luaunit.assertIs(message, object)
  x:fill(3, stream) -- not captured any more
  luaunit.assertEquals({ x:compare(3) }, { 0 })
  local graph <close> = fill_graph(stream, x, 4)
  graph:launch(stream)
  luaunit.assertEquals({ x:compare(4) }, { 0 })
end

function TestGraph.test_what_a_capture_refuses()
  local stream <close> = cuda.stream()
  local x <close> = cuda.buffer("i32", 4):fill(1)
  local event <close> = cuda.event()
  event:record():sync()
  local other <close> = fill_graph(stream, x, 1)
  local graph <close> = stream:capture(function()
    raises("another capture is running", stream.capture, stream, print)
    local CASES = {
      { "sync", stream.sync, stream }, { "query", stream.query, stream },
      { "sync", event.sync, event }, { "query", event.query, event },
      { "synchronize", cuda.synchronize }, { "time", cuda.time, stream, print },
      { "fill", x.fill, x, 1 }, { "to_table", x.to_table, x }, { "get", x.get, x, 1 },
      { "to_string", x.to_string, x }, { "compare", x.compare, x, 1, { stream = stream } },
      { "copy_from", x.copy_from, x, { 1, 2, 3, 4 }, stream },
      { "copy_from", x.copy_from, x, ("a"):rep(16), stream },
    }
    raises("launch: a graph cannot be captured", other.launch, other, stream)
    for _, case in ipairs(CASES) do
      raises(case[1] .. ": cannot wait for the device while", table.unpack(case, 2, 6))
    end
    x:fill(5, stream)
  end)
  graph:launch(stream)
  luaunit.assertEquals({ x:compare(5) }, { 0 })
end

function TestGraph.test_keeps_what_it_uses()
  local stream <close> = cuda.stream()
  local x = cuda.buffer("i32", 1000):fill(0)
  local weak = setmetatable({ x }, { __mode = "v" })
  local graph = fill_graph(stream, x:slice(1, 500), 1)
  x = nil -- luacheck: ignore
  for _ = 1, 3 do collectgarbage() end
  luaunit.assertNotNil(weak[1])
  graph:launch(stream)
  luaunit.assertEquals(weak[1]:get(500), 1)
  graph:close()
  for _ = 1, 3 do collectgarbage() end
  luaunit.assertNil(weak[1]) -- and no longer than that
end

function TestGraph.test_closing_a_buffer_closes_its_graphs()
  local stream <close> = cuda.stream()
  local x = cuda.buffer("i32", 4):fill(1)
  local y <close> = cuda.buffer("i32", 4):fill(1)
  local first, second = fill_graph(stream, x, 1), fill_graph(stream, x:slice(1, 2), 2)
  local third <close> = fill_graph(stream, y, 3)
  first:launch(stream)
  x:close()
  raises("closed graph", first.launch, first, stream)
  raises("closed graph", second.launch, second, stream)
  third:launch(stream)
  luaunit.assertEquals({ y:compare(3) }, { 0 })
end

function TestGraph.test_closed_inside()
  local stream <close> = cuda.stream()
  raises("something that was captured has been closed", stream.capture, stream, function()
    local x <close> = cuda.buffer("i32", 4)
    x:fill(1, stream)
  end)
  local _ <close> = assert(stream:capture(function()
    local _ <close> = cuda.buffer("i32", 4)
  end))
  local graph = assert(cuda.stream():capture(function(s) s:close() end))
  graph:close()
end
