--- Async: a call returns when its work is enqueued; to wait is the business of a stream.
local cuda = require("nclua.cuda")
local measure = require("nclua.measure")
local payload = require("nclua.payload")
local section = require("nclua.section")

local KiB = 1 << 10
local FP32 = 4 -- bytes

local async = section.new("async", {
  title = "Async completion",
  columns = [[world_size size_bytes cycle host_enqueue_us work_completed_after_return
    host_wait_us gpu_dependency_us event_ready_after_wait correct]],
  keys = "size_bytes",
  case = "bytes={size_bytes}",
  metric = "gpu_dependency_us",
  summary = [[world_size size_bytes cycles median_host_enqueue_us median_host_wait_us
    median_gpu_dependency_us p95_gpu_dependency_us gpu_cv_percent
    work_completed_after_return_rate event_ready_after_wait_rate correct]],
  report = {
    { "bytes", "size_bytes" },
    { "host enqueue us", "median_host_enqueue_us", "%.3f" },
    { "stream wait host us", "median_host_wait_us", "%.3f" },
    { "GPU dependency us", "median_gpu_dependency_us", "%.3f" },
    { "done after return", "work_completed_after_return_rate", "%%" },
    { "event ready after wait", "event_ready_after_wait_rate", "%%" },
    { "CV", "gpu_cv_percent", "%.2f%%" },
  },
})

function async.cases(opt)
  local cases = {}
  for i, bytes in ipairs(measure.sizes(4 * KiB, opt.largest, 16)) do
    cases[i] = { size_bytes = bytes }
  end
  return cases
end

local function event()
  return assert(cuda.event())
end

function async.measure(rank, case)
  local comm, stream = rank.comm, rank.stream
  local consumer <close> = assert(cuda.stream())
  local before, done, after = event(), event(), event()
  local data <close> = payload.all_reduce(rank, "f32", case.size_bytes // FP32)
  for _ in rank:cycles() do
    data:clear(stream)
    rank:barrier()
    before:record(stream)
    local host_enqueue_us = measure.host_us(function()
      comm:all_reduce(data.send, data.recv, "sum", stream)
    end)
    done:record(stream)
    local was_completed = done:query()
    local host_wait_us = measure.host_us(function() consumer:wait(done) end)
    after:record(consumer)
    local was_ready = after:query()
    after:sync()
    local correct = data:is_sum(stream)
    rank:check("sum of every element", correct)
    rank:emit({
      host_enqueue_us = host_enqueue_us,
      work_completed_after_return = was_completed,
      host_wait_us = host_wait_us,
      gpu_dependency_us = before:elapsed_us(after),
      event_ready_after_wait = was_ready,
      correct = correct,
    })
  end
end

function async.summarise(case)
  local gpu = case:slowest("gpu_dependency_us")
  return {
    cycles = gpu.samples,
    median_host_enqueue_us = case:slowest("host_enqueue_us").median,
    median_host_wait_us = case:slowest("host_wait_us").median,
    median_gpu_dependency_us = gpu.median,
    p95_gpu_dependency_us = gpu.p95,
    gpu_cv_percent = gpu.cv_percent,
    work_completed_after_return_rate = case:rate("work_completed_after_return"),
    event_ready_after_wait_rate = case:rate("event_ready_after_wait"),
  }, gpu
end

return async
