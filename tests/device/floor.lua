--- What floor.c measures, by a script: nclua floor.lua [CYCLES]; FLOOR_ONLY=start for the
--- time from the start of the program to the first AllReduce alone. CSV on stdout.
local cuda = require("nclua.cuda")
local ranks = require("nclua.ranks")

local CALLS, PIECES, TOTAL, WARM_UPS = 160, 1280, 80 << 20, 3
local SIZES = { 8 << 10, 64 << 10, 256 << 10, 1 << 20 }
local cycles = tonumber(arg[1] or 10)
local only_start = os.getenv("FLOOR_ONLY") == "start"
local start_ns = tonumber(os.getenv("FLOOR_START_NS") or cuda.now_ns())

local function emit(rank, case, bytes, metric, cycle, value)
  if cycle < 1 then return end -- a warm-up
  rank:emit("row", { case = case, bytes = bytes, metric = metric, cycle = cycle,
    value = value })
end

local function eager(rank, comm, stream, list, case, cycle)
  stream:sync()
  rank:barrier()
  local started, ended
  local gpu_us = cuda.time(stream, function()
    started = cuda.now_ns()
    for i = 1, #list do
      local x = list[i]
      comm:all_reduce(x, x, "sum", stream)
    end
    ended = cuda.now_ns()
  end)
  emit(rank, case, list[1].bytes, "gpu_us", cycle, gpu_us)
  emit(rank, case, list[1].bytes, "host_us_a_call", cycle, (ended - started) / 1000 / #list)
end

local function decode(rank, comm, stream, memory, bytes)
  local x, list = memory:slice(1, bytes // 2), {}
  for i = 1, CALLS do list[i] = x end
  for cycle = 1 - WARM_UPS, cycles do eager(rank, comm, stream, list, "eager", cycle) end
  local graph <close> = assert(stream:capture(function()
    for _ = 1, CALLS do comm:all_reduce(x, x, "sum", stream) end
  end))
  for cycle = 1 - WARM_UPS, cycles do
    stream:sync()
    rank:barrier()
    local gpu_us = cuda.time(stream, function() graph:launch(stream) end)
    emit(rank, "graph", bytes, "gpu_us", cycle, gpu_us)
  end
end

local function pieces(rank, comm, stream, memory)
  local list, count = {}, memory.count // PIECES
  for i = 1, PIECES do list[i] = memory:slice((i - 1) * count + 1, count) end
  for cycle = 0, cycles do eager(rank, comm, stream, list, "pieces", cycle) end
end

local function measure(rank)
  local comm <close> = rank:comm()
  local stream <close> = assert(cuda.stream())
  local memory <close> = assert(cuda.buffer("f16", TOTAL // 2))
  local first = memory:slice(1, SIZES[1] // 2)
  comm:all_reduce(first, first, "sum", stream)
  stream:sync()
  emit(rank, "start", SIZES[1], "first_us", 1, (cuda.now_ns() - start_ns) / 1000)
  if only_start then return end
  memory:fill(0) -- sums of zeros stay finite
  for _, bytes in ipairs(SIZES) do decode(rank, comm, stream, memory, bytes) end
  pieces(rank, comm, stream, memory)
end

local n = tonumber(os.getenv("FLOOR_RANKS") or 2)
assert(ranks.run({ n = n, fn = measure, timeout_s = 30,
  on_row = function(index, _, r)
    print(("lua,%s,%d,%s,%d,%d,%.3f"):format(r.case, r.bytes, r.metric, r.cycle, index,
      r.value))
  end }))
