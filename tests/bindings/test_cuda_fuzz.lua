--- Any value anywhere, in any order, in mid-capture and from finalizers: never a crash.
local cuda = require("nclua.cuda")
local fuzz = require("fuzz")
local luaunit = require("luaunit")

TestCudaFuzz = {}

local function graph()
  local stream, x = cuda.stream(), cuda.buffer("u8", 16)
  return stream:capture(function() x:fill(1, stream) end)
end

function TestCudaFuzz.test_any_value_anywhere()
  local report = fuzz.module(cuda, {
    n = 30000,
    values = {
      "f32", "i8", "u64", "f16", "f8e4m3", "kind", "nccl", "device", "priority", "high",
      "timing", "tolerance", "stream", "start", "step", "modulus", { tolerance = 0.5 },
    },
    make = {
      function() return cuda.buffer("f32", 3) end,
      function() return cuda.buffer("i8", 8):fill(1) end,
      function() return cuda.buffer("u64", 1):slice(1, 1) end,
      cuda.stream, cuda.event, graph,
    },
  })
  luaunit.assertEquals(report.unreached, {})
  cuda.set_device(0)
end

local function any(list)
  return list[math.random(#list)]
end

local function maybe(value)
  return math.random(3) > 1 and value or nil
end

--- Right types, any state and order: closed handles, slices of closed buffers, other
--- devices, captures that fail half-way, collection in between.
local World = {}
World.__index = World

local KINDS = { "buffer", "stream", "event", "graph" }
local DTYPES = { "i8", "u64", "f16", "f32", "f8e5m2" }

function World:pick(kind)
  return any(self[kind])
end

function World:keep(kind, value)
  local list = self[kind]
  if value then list[#list < 12 and #list + 1 or math.random(12)] = value end
end

local MAKE = {
  function(w) w:keep("buffer", cuda.buffer(any(DTYPES), math.random(0, 5000))) end,
  function(w) w:keep("stream", cuda.stream({ priority = any({ "normal", "high" }) })) end,
  function(w) w:keep("event", cuda.event({ timing = math.random(5) > 1 })) end,
  function(w)
    local x = w:pick("buffer")
    w:keep("buffer", x:slice(math.random(9), math.random(0, 9)))
  end,
  function(w)
    local stream = w:pick("stream")
    w:keep("graph", stream:capture(function() w:steps(math.random(0, 6), stream) end))
  end,
}

local USE = {
  function(w, s) w:pick("buffer"):fill(math.random(0, 9), s) end,
  function(w, s) w:pick("buffer"):pattern({ modulus = math.random(8) }, s) end,
  function(w, s) w:pick("buffer"):copy_from(w:pick("buffer"), s) end,
  function(w, s) w:pick("buffer"):set(math.random(9), 1, s) end,
  function(w, s) w:pick("buffer"):compare(w:pick("buffer"), { stream = s }) end,
  function(w, s)
    local x = w:pick("buffer")
    x:copy_from(x:to_table(), s)
  end,
  function(w) return #w:pick("buffer"):to_string() end,
  function(w, s) w:pick("event"):record(s) end,
  function(w) w:pick("stream"):wait(w:pick("event")) end,
  function(w) w:pick("event"):sync() end,
  function(w) w:pick("event"):elapsed_us(w:pick("event")) end,
  function(w) return w:pick("stream"):query(), w:pick("event"):query() end,
  function(w) w:pick("stream"):sync() end,
  function(w, s) w:pick("graph"):launch(s) end,
  function(w, s) cuda.time(s, function() w:steps(3, s) end) end,
  function() cuda.set_device(math.random(0, 1)) end,
}

function World:step(stream)
  local roll = math.random(40)
  if roll == 1 then
    self:pick(any(KINDS)):close()
  elseif roll == 2 then
    collectgarbage(any({ "collect", "step" }))
  elseif roll == 3 then
    local doomed = self:pick(any(KINDS))
    setmetatable({}, { __gc = function() doomed:close() end })
  elseif roll < 16 then
    any(MAKE)(self)
  else
    any(USE)(self, maybe(stream or self:pick("stream")))
  end
end

function World:steps(n, stream)
  for _ = 1, n do
    local ok, message = pcall(self.step, self, stream)
    self.done = self.done + (ok and 1 or 0)
    if not ok then self.last = message end
    self.count = self.count + 1
  end
end

function TestCudaFuzz.test_any_order()
  for seed = 1, 6 do
    math.randomseed(seed)
    local world = setmetatable({ done = 0, count = 0 }, World)
    for _, kind in ipairs(KINDS) do world[kind] = {} end
    world:keep("buffer", cuda.buffer("f32", 100))
    world:keep("stream", cuda.stream())
    world:keep("event", cuda.event())
    world:keep("graph", graph())
    while world.count < 2500 do world:steps(50) end
    luaunit.assertTrue(world.done > world.count / 4, world.last)
  end
  collectgarbage()
  cuda.set_device(0)
  cuda.synchronize()
end
