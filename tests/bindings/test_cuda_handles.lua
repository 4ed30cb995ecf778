--- nclua.cuda, on either backend: handles used, closed and collected in the wrong order.
local cuda = require("nclua.cuda")
local luaunit = require("luaunit")

local function raises(text, f, ...)
  luaunit.assertErrorMsgContains(text, f, ...)
end

--- A graph that holds one fill of `x`.
local function fill_graph(stream, x, value)
  return assert(stream:capture(function() x:fill(value, stream) end))
end

--- The five tests of every handle type.
TestHandles = {}

local MAKE = {
  ["cuda.buffer"] = function() return cuda.buffer("f32", 1024):fill(1) end,
  ["cuda.stream"] = function() return cuda.stream() end,
  ["cuda.event"] = function() return cuda.event() end,
  ["cuda.graph"] = function()
    local stream, x = cuda.stream(), cuda.buffer("f32", 1024)
    return fill_graph(stream, x, 1)
  end,
}

local METHODS = {
  ["cuda.buffer"] = {
    "fill", "pattern", "copy_from", "to_table", "to_string", "slice", "get", "set",
    "compare",
  },
  ["cuda.stream"] = { "sync", "query", "wait", "capture" },
  ["cuda.event"] = { "record", "query", "sync", "elapsed_us" },
  ["cuda.graph"] = { "launch" },
}

function TestHandles.test_use_after_close()
  for name, make in pairs(MAKE) do
    local handle = assert(make())
    handle:close()
    handle:close() -- twice is fine
    luaunit.assertEquals(tostring(handle), name .. " (closed)")
    luaunit.assertEquals(handle.device, 0) -- a fact, not a use
    for _, method in ipairs(METHODS[name]) do
      raises("attempt to use a closed " .. name:sub(6), handle[method], handle, 1, 1)
    end
    do local _ <close> = handle end
  end
end

function TestHandles.test_closed_argument()
  local x <close>, y = cuda.buffer("i32", 1):fill(1), cuda.buffer("i32", 1)
  local stream, event <close> = cuda.stream(), cuda.event()
  local graph <close> = fill_graph(stream, x, 1)
  y:close()
  stream:close()
  raises("closed buffer", x.copy_from, x, y)
  raises("closed buffer", x.compare, x, y)
  raises("closed stream", x.fill, x, 1, stream)
  raises("closed stream", event.record, event, stream)
  raises("closed stream", graph.launch, graph, stream)
  raises("closed stream", cuda.time, stream, print)
  local closed = cuda.event()
  closed:close()
  local open <close> = cuda.stream()
  raises("closed event", open.wait, open, closed)
end

function TestHandles.test_wrong_self()
  for name, make in pairs(MAKE) do
    local handle <close> = make()
    luaunit.assertEquals(getmetatable(handle), "protected")
    for _, wrong in ipairs({ 1, "x", {}, io.stdout, print }) do
      for _, method in ipairs(METHODS[name]) do
        raises(name .. " expected", handle[method], wrong, 1, 1)
      end
      raises(name .. " expected", handle.close, wrong)
    end
  end
end

function TestHandles.test_collected_while_in_use()
  for round = 1, 20 do
    local stream = cuda.stream()
    local x = cuda.buffer("f32", 1 << 18)
    local y = cuda.buffer("f32", 1 << 18)
    local event = cuda.event()
    local graph = fill_graph(stream, y, round)
    for _ = 1, 5 do
      x:fill(round, stream)
      y:copy_from(x, stream)
      event:record(stream)
      graph:launch(stream)
    end
    stream, x, y, event, graph = nil, nil, nil, nil, nil -- luacheck: ignore
    collectgarbage(round % 2 == 0 and "collect" or "step")
  end
  cuda.synchronize()
end

--- Closing does not wait, and what is closed may still be at work.
function TestHandles.test_closed_while_in_use()
  local stream = cuda.stream()
  local y <close> = cuda.buffer("f32", 1 << 20):fill(0)
  for round = 1, 20 do
    local x = cuda.buffer("f32", 1 << 20)
    local event = cuda.event()
    x:fill(round, stream)
    y:copy_from(x, stream)
    event:record(stream)
    x:close()
    event:close()
  end
  stream:close()
  luaunit.assertEquals({ y:compare(20) }, { 0 })
end

--- A finalizer that closes the handle at work, at any allocation of the binding.
function TestHandles.test_closed_by_a_finalizer()
  local stream = cuda.stream()
  collectgarbage("generational")
  for round = 1, 400 do
    local x = cuda.buffer("f32", 64):fill(1)
    local s = round % 7 == 0 and cuda.stream() or stream
    local function close()
      x:close()
      if s ~= stream then s:close() end
    end
    for _ = 1, 2 do setmetatable({}, { __gc = close }) end
    pcall(function()
      local part = x:slice(2, 20):slice(2, 10)
      part:copy_from(part:to_table(), s)
      part:compare(1, { stream = s })
      x:to_string()
      cuda.time(s, function() part:fill(1, s) end)
      local graph = s:capture(function() part:fill(2, s) end)
      if graph then graph:launch(s) end
    end)
  end
  collectgarbage("incremental")
  stream:close()
end

function TestHandles.test_many_streams()
  local streams = {}
  for i = 1, 40 do streams[i] = assert(cuda.stream()) end
  local x <close> = cuda.buffer("i32", 40)
  for i, stream in ipairs(streams) do x:set(i, i, stream) end
  for i = #streams, 1, -1 do streams[i]:close() end
  local values = x:to_table()
  for i = 1, 40 do luaunit.assertEquals(values[i], i) end
end
