--- Decomposition: AllReduce against the ReduceScatter and AllGather it is made of.
local cuda = require("nclua.cuda")
local measure = require("nclua.measure")
local payload = require("nclua.payload")
local section = require("nclua.section")

local KiB = 1 << 10
local FP32 = 4 -- bytes

local decomposition = section.new("decomposition", {
  title = "AllReduce versus explicit ReduceScatter plus AllGather",
  columns = "world_size size_bytes mode cycle duration_us",
  keys = "size_bytes mode",
  case = "bytes={size_bytes};mode={mode}",
  metric = "duration_us",
  summary = [[world_size size_bytes mode cycles median_duration_us p95_duration_us
    cv_percent overhead_vs_allreduce_percent correct]],
  report = {
    { "bytes", "size_bytes" },
    { "mode", "mode" },
    { "median us", "median_duration_us", "%.3f" },
    { "overhead vs AllReduce", "overhead_vs_allreduce_percent", "%.2f%%" },
    { "CV", "cv_percent", "%.2f%%" },
  },
})

local MODES = { "direct", "reduce_scatter_all_gather" }

function decomposition.cases(opt, world_size)
  local cases = {}
  for _, bytes in ipairs(measure.sizes(64 * KiB, opt.largest, 16)) do
    bytes = bytes // FP32 // world_size * world_size * FP32 -- every rank has a whole shard
    for _, mode in ipairs(MODES) do
      cases[#cases + 1] = { size_bytes = bytes, mode = mode }
    end
  end
  return cases
end

function decomposition.measure(rank, case)
  local comm, stream = rank.comm, rank.stream
  local count = case.size_bytes // FP32
  local data <close> = payload.all_reduce(rank, "f32", count)
  local shard = data.recv:slice(rank.index * count // rank.count + 1, count // rank.count)
  local enqueue = {
    direct = function() comm:all_reduce(data.send, data.recv, "sum", stream) end,
    reduce_scatter_all_gather = function()
      comm:reduce_scatter(data.send, shard, "sum", stream)
      comm:all_gather(shard, data.recv, stream)
    end,
  }
  for _ in rank:cycles() do
    data:clear(stream)
    rank:barrier()
    rank:emit({ duration_us = cuda.time(stream, enqueue[case.mode]) })
    rank:check("sum of every element", data:is_sum(stream))
  end
end

function decomposition.summarise(case)
  local time, direct = case:slowest("duration_us"), case:with({ mode = "direct" })
  return {
    cycles = time.samples,
    median_duration_us = time.median,
    p95_duration_us = time.p95,
    cv_percent = time.cv_percent,
    overhead_vs_allreduce_percent =
      (time.median / direct:slowest("duration_us").median - 1) * 100,
  }, time
end

return decomposition
