--- nclua.nccl: any value anywhere, right types in any order: never a crash, never a hang.
local cuda = require("nclua.cuda")
local fuzz = require("fuzz")
local luaunit = require("luaunit")
local nccl = require("nclua.nccl")

TestNcclFuzz = {}

function TestNcclFuzz.test_any_value_anywhere()
  local id = assert(nccl.unique_id())
  local report = fuzz.module(nccl, {
    n = 30000,
    values = {
      "f32", "i8", "sum", "avg", "name", "blocking", "min_ctas", "symmetric", "abort",
      { id = id, rank = 0, count = 1 }, { 0 }, { min_ctas = 2 }, { symmetric = false },
    },
    make = {
      function() return assert(nccl.init_all(1))[1] end,
      function() return assert(nccl.init_all(1))[1]:pre_mul_sum(2, "f32") end,
      function() return assert(nccl.init_all(1))[1]:register(cuda.buffer("f32", 3)) end,
      function() return cuda.buffer("f32", 3) end,
      function() return cuda.buffer("i8", 8):fill(1) end,
      cuda.stream,
    },
  })
  luaunit.assertEquals(report.unreached, {})
end

local function any(list)
  return list[math.random(#list)]
end

local DTYPES = { "i8", "f16", "f32", "u64" }
local OPS = { "sum", "prod", "max", "min", "avg" }
local KINDS = { "comm", "buffer", "stream", "op", "registration", "graph" }

--- Right types, whatever their state: closed handles, slices of closed buffers, groups and
--- captures that fail half-way, collection in between.
local World = {}
World.__index = World

function World:keep(kind, value)
  local list = self[kind]
  if value then list[#list < 8 and #list + 1 or math.random(8)] = value end
end

function World:pick(kind)
  return any(self[kind])
end

local STEPS = {
  function(w) w:keep("comm", nccl.init_all(1)[1]) end,
  function(w) w:keep("comm", w:pick("comm"):split(0, 0)) end,
  function(w)
    w:keep("comm", nccl.comm({ id = nccl.unique_id(), rank = 0, count = 1, name = "one" }))
  end,
  function(w) w:keep("buffer", cuda.buffer(any(DTYPES), math.random(0, 2000))) end,
  function(w)
    w:keep("buffer", w:pick("buffer"):slice(math.random(9), math.random(0, 9)))
  end,
  function(w) w:keep("stream", cuda.stream()) end,
  function(w) w:keep("op", w:pick("comm"):pre_mul_sum(math.random(3), any(DTYPES))) end,
  function(w) w:keep("registration", w:pick("comm"):register(w:pick("buffer"))) end,
  function(w) w:keep("registration", w:pick("comm"):window(w:pick("buffer"))) end,
  function(w) nccl.group(function() w:steps(6) end) end,
  function(w)
    nccl.group(function()
      w:steps(3)
      if math.random(2) == 1 then error("half-way") end
    end)
  end,
  function(w, s)
    local stream = s or w:pick("stream")
    w:keep("graph", stream:capture(function() w:steps(4, stream) end))
  end,
  function(w, s) w:pick("graph"):launch(s or w:pick("stream")) end,
  function(w) w:pick("comm"):finalize() end,
  function(w) w:pick("comm"):abort() end,
  function(w) w:pick(any(KINDS)):close() end,
  function(w) w[any(KINDS)][math.random(8)] = nil end, -- holes are skipped by pcall
  function() collectgarbage("step", 50) end,
  function(w) w:pick("stream"):sync() end,
}

for _ = 1, 3 do -- as likely as all the rest together
  for _, method in ipairs({ "all_reduce", "reduce_scatter" }) do
    STEPS[#STEPS + 1] = function(w, s)
      local x, op = w:pick("buffer"), math.random(3) == 1 and w:pick("op") or any(OPS)
      local comm = w:pick("comm")
      comm[method](comm, x, math.random(2) == 1 and x or w:pick("buffer"), op, s)
    end
  end
  for _, method in ipairs({ "all_gather", "all_to_all" }) do
    STEPS[#STEPS + 1] = function(w, s)
      local comm = w:pick("comm")
      comm[method](comm, w:pick("buffer"), w:pick("buffer"), s)
    end
  end
  for _, method in ipairs({ "broadcast", "gather", "scatter" }) do
    STEPS[#STEPS + 1] = function(w, s)
      local comm, x = w:pick("comm"), w:pick("buffer")
      comm[method](comm, x, x, 0, s)
    end
  end
end

function World:steps(n, stream)
  for _ = 1, n do
    self.calls = self.calls + 1
    local s = stream or math.random(2) == 1 and self:pick("stream") or nil
    local ok = pcall(any(STEPS), self, s)
    if ok then self.done = self.done + 1 end
  end
end

function TestNcclFuzz.test_orders()
  local seeds = tonumber(os.getenv("NCLUA_FUZZ_SEEDS")) or 25
  for seed = 1, seeds do
    math.randomseed(seed)
    local w = setmetatable({ calls = 0, done = 0 }, World)
    for _, kind in ipairs(KINDS) do w[kind] = {} end
    for _, make in ipairs({ 1, 4, 6, 7, 8, 12 }) do pcall(STEPS[make], w) end
    w:steps(400)
    luaunit.assertTrue(w.done > 40, ("seed %d: %d of %d"):format(seed, w.done, w.calls))
    w = nil -- luacheck: ignore 311
    collectgarbage()
  end
  cuda.synchronize()
end

--- Ranks of one communicator, closed in any order, with work in flight.
function TestNcclFuzz.test_closing_orders()
  local ranks = math.min(4, #assert(cuda.devices()))
  for seed = 1, 15 do
    math.randomseed(seed)
    local comms, things = assert(nccl.init_all(ranks)), {}
    nccl.group(function()
      for i, comm in ipairs(comms) do
        cuda.set_device(i - 1)
        local stream, x = cuda.stream(), cuda.buffer("i32", 20000):fill(i)
        things[#things + 1] = comm
        things[#things + 1] = stream
        things[#things + 1] = x
        things[#things + 1] = comm:register(x)
        comm:all_reduce(x, x, "sum", stream)
      end
    end)
    cuda.set_device(0)
    while #things > 0 do
      local thing = table.remove(things, math.random(#things))
      if math.random(4) > 1 then thing:close() end
      if math.random(8) == 1 then collectgarbage() end
    end
  end
end
