--- What tracing costs: 160 AllReduces back to back, traced and not in turns, in one process
--- a GPU: nclua trace_pair.lua [BLOCKS [CYCLES]]. Prints a row a case: CSV of case, bytes,
--- medians of the slowest rank with and without, and the ratio in percent.
local ranks = require("nclua.ranks")
local stats = require("nclua.stats")

local CALLS, SIZES = 160, { 8 << 10, 1 << 20 }
local blocks, cycles = tonumber(arg[1] or 8), tonumber(arg[2] or 10)
local folder = os.getenv("OUT") or "."

-- One block of cycles; the first of them is a warm-up after the tracer came or went.
local function measure(rank, bench, case, bytes, traced, block)
  local cuda = require("nclua.cuda")
  for cycle = 0, cycles do
    bench.stream:sync()
    rank:barrier()
    local us = cuda.time(bench.stream, bench[case])
    if cycle > 0 then
      rank:emit("row", { case = case, bytes = bytes, traced = traced,
        cycle = block * 1000 + cycle, us = us })
    end
  end
end

-- A graph is known to the tracer from its capture on, so each block has its own.
local function one_block(rank, bench, bytes, traced, block)
  local trace = require("nclua.trace")
  if traced then
    assert(trace.start({ file = ("%s/pair-%d.sqlite"):format(folder, rank.index) }))
  end
  do
    local graph <close> = assert(bench.stream:capture(bench.eager))
    function bench.graph() graph:launch(bench.stream) end
    for _, case in ipairs({ "eager", "graph" }) do
      measure(rank, bench, case, bytes, traced, block)
    end
  end
  if traced then assert(trace.stop()) end
end

local function one_size(rank, bench, bytes)
  local x = bench.memory:slice(1, bytes // 2)
  function bench.eager()
    for _ = 1, CALLS do bench.comm:all_reduce(x, x, "sum", bench.stream) end
  end
  bench.eager()
  for block = 1, blocks do one_block(rank, bench, bytes, block % 2 == 0, block) end
end

local slowest = {}
assert(ranks.run({
  n = 2, timeout_s = 120,
  on_row = function(_, _, row)
    local key = ("%s,%d,%s"):format(row.case, row.bytes, row.traced)
    slowest[key] = slowest[key] or {}
    local list = slowest[key]
    list[row.cycle] = math.max(list[row.cycle] or 0, row.us)
  end,
  fn = function(rank)
    local cuda = require("nclua.cuda")
    local comm <close> = rank:comm()
    local stream <close> = assert(cuda.stream())
    local memory <close> = assert(cuda.buffer("f16", SIZES[#SIZES] // 2)):fill(0)
    local bench = { comm = comm, stream = stream, memory = memory }
    for _, bytes in ipairs(SIZES) do one_size(rank, bench, bytes) end
  end,
}))

local function median(key)
  local list = {}
  for _, us in pairs(slowest[key] or {}) do list[#list + 1] = us end
  return stats.median(list)
end

print("case,bytes,untraced_us,traced_us,percent")
for _, case in ipairs({ "eager", "graph" }) do
  for _, bytes in ipairs(SIZES) do
    local without = median(("%s,%d,false"):format(case, bytes))
    local with = median(("%s,%d,true"):format(case, bytes))
    print(("%s,%d,%.1f,%.1f,%.2f"):format(case, bytes, without, with,
      100 * (with / without - 1)))
  end
end
