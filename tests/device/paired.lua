--- The same AllReduces from Lua and from C in turns, over one communicator, stream and
--- buffer: which of the two is called is all that differs. Run by paired.c.
package.path = "lib/?.lua;" .. package.path
local output, cycles = ...

local ranks = require("nclua.ranks")

local CALLS, PIECES, TOTAL, WARM_UPS = 160, 1280, 80 << 20, 5
local SIZES = { 8 << 10, 64 << 10, 256 << 10, 1 << 20 }

local cuda, paired

-- What one rank measures with. `emit` drops warm-ups.
local function setup(rank)
  cuda, paired = require("nclua.cuda"), require("paired")
  local bench = { rank = rank, comm = rank:comm(), stream = assert(cuda.stream()),
    memory = assert(cuda.buffer("f16", TOTAL // 2)):fill(0) }
  function bench.emit(who, case, bytes, metric, cycle, value)
    if cycle < 1 then return end
    rank:emit("row", { who = who, case = case, bytes = bytes, metric = metric,
      cycle = cycle, value = value })
  end
  return bench
end

local function ready(bench)
  bench.stream:sync()
  bench.rank:barrier()
end

local function lua_eager(bench, list)
  local comm, stream, n = bench.comm, bench.stream, #list
  local started, ended
  local all_reduce = comm.all_reduce -- a method looked up once, as hot loops do
  local gpu_us = cuda.time(stream, function()
    started = cuda.now_ns()
    for i = 1, n do
      local x = list[i]
      all_reduce(comm, x, x, "sum", stream)
    end
    ended = cuda.now_ns()
  end)
  return gpu_us, (ended - started) / 1000 / n
end

local function c_eager(bench, calls, bytes, step)
  return paired.eager(bench.comm, bench.memory, bench.stream, calls, bytes, step)
end

-- Runs both ways in turns; which one is first alternates, too.
local function in_turns(bench, count, ways, emit)
  for cycle = 1 - WARM_UPS, count do
    for turn = 1, 2 do
      local who = (cycle + turn) % 2 == 0 and "c" or "lua"
      ready(bench)
      emit(who, cycle, ways[who]())
    end
  end
end

local function eager(bench, case, calls, bytes, step, count)
  local list = {}
  for i = 1, calls do
    list[i] = bench.memory:slice((i - 1) * step // 2 + 1, bytes // 2)
  end
  in_turns(bench, count, {
    c = function() return c_eager(bench, calls, bytes, step) end,
    lua = function() return lua_eager(bench, list) end,
  }, function(who, cycle, gpu_us, host_us)
    bench.emit(who, case, bytes, "gpu_us", cycle, gpu_us)
    bench.emit(who, case, bytes, "host_us_a_call", cycle, host_us)
  end)
end

-- The same calls, checked once and then made by a loop in C: what a script can have that
-- wants the floor itself.
local function burst(bench, case, calls, bytes, step, count)
  local comm, stream = bench.comm, bench.stream
  local own <close> = comm:burst(function()
    for i = 1, calls do
      local x = bench.memory:slice((i - 1) * step // 2 + 1, bytes // 2)
      comm:all_reduce(x, x, "sum")
    end
  end)
  in_turns(bench, count, {
    c = function() return c_eager(bench, calls, bytes, step) end,
    lua = function()
      return cuda.time(stream, function() own:rewind():enqueue(calls, stream) end)
    end,
  }, function(who, cycle, gpu_us) bench.emit(who, case, bytes, "gpu_us", cycle, gpu_us) end)
end

local function graph(bench, bytes)
  local comm, stream = bench.comm, bench.stream
  local x = bench.memory:slice(1, bytes // 2)
  local of_lua <close> = assert(stream:capture(function()
    for _ = 1, CALLS do comm:all_reduce(x, x, "sum", stream) end
  end))
  local of_c = paired.capture(comm, bench.memory, stream, CALLS, bytes, 0)
  in_turns(bench, cycles, {
    c = function() return paired.launch(comm, bench.memory, stream, 0, 0, 0, of_c) end,
    lua = function() return cuda.time(stream, function() of_lua:launch(stream) end) end,
  }, function(who, cycle, gpu_us)
    bench.emit(who, "graph", bytes, "gpu_us", cycle, gpu_us)
  end)
  stream:sync()
  paired.destroy(comm, bench.memory, stream, 0, 0, 0, of_c)
end

local function measure(rank)
  local bench = setup(rank)
  for _, bytes in ipairs(SIZES) do
    eager(bench, "eager", CALLS, bytes, 0, cycles)
    burst(bench, "burst", CALLS, bytes, 0, cycles)
    graph(bench, bytes)
  end
  eager(bench, "pieces", PIECES, TOTAL // PIECES, TOTAL // PIECES, cycles // 2)
  burst(bench, "burstpieces", PIECES, TOTAL // PIECES, TOTAL // PIECES, cycles // 2)
  ready(bench)
  bench.comm:close()
end

local file = assert(io.open(output, "w"))
file:write("program,case,bytes,metric,cycle,rank,value\n")
local n = tonumber(os.getenv("FLOOR_RANKS") or 2)
assert(ranks.run({ n = n, fn = measure, timeout_s = 30,
  on_row = function(index, _, r)
    file:write(("%s,%s,%d,%s,%d,%d,%.3f\n"):format(r.who, r.case, r.bytes, r.metric,
      r.cycle, index, r.value))
  end }))
file:close()
