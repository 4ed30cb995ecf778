--- Fragmentation: one payload in one call, and in ever more.
local cuda = require("nclua.cuda")
local payload = require("nclua.payload")
local section = require("nclua.section")
local size = require("nclua.size")

local FP16 = 2 -- bytes

local fragmentation = section.new("fragmentation", {
  title = "Same logical payload split into multiple collectives",
  columns = "world_size total_bytes fragment_count fragment_bytes cycle duration_us",
  keys = "total_bytes fragment_count fragment_bytes",
  case = "count={fragment_count};fragment_bytes={fragment_bytes}",
  metric = function(case)
    return "duration_us_for_" .. size.format(case.total_bytes):gsub(" ", "")
  end,
  summary = [[world_size total_bytes fragment_count fragment_bytes cycles median_duration_us
    p95_duration_us min_duration_us max_duration_us cv_percent slowdown_vs_one_collective
    median_per_collective_us strictly_slower_than_one_in_all_cycles correct]],
  report = {
    { "calls", "fragment_count" },
    { "bytes/call", "fragment_bytes" },
    { "median total us", "median_duration_us", "%.3f" },
    { "slowdown vs one call", "slowdown_vs_one_collective", "%.2fx" },
    { "per call us", "median_per_collective_us", "%.3f" },
    { "CV", "cv_percent", "%.2f%%" },
  },
})

-- Each divides the last, so that the fragments of a payload are equal and whole.
local COUNTS = { 1, 5, 20, 80, 320, 1280 }

function fragmentation.cases(opt)
  local cases, unit = {}, COUNTS[#COUNTS] * FP16
  local total = math.max(1, opt.fragment_total // unit) * unit
  for i, count in ipairs(COUNTS) do
    if count > opt.fragment_calls then break end
    cases[i] =
      { total_bytes = total, fragment_count = count, fragment_bytes = total // count }
  end
  return cases
end

function fragmentation.measure(rank, case)
  local comm, stream = rank.comm, rank.stream
  local count = case.fragment_bytes // FP16
  local data <close> = payload.all_reduce(rank, "f16", case.total_bytes // FP16)
  local sends, recvs = {}, {}
  for i = 1, case.fragment_count do
    sends[i] = data.send:slice((i - 1) * count + 1, count)
    recvs[i] = data.recv:slice((i - 1) * count + 1, count)
  end
  for _ in rank:cycles() do
    data:clear(stream)
    rank:barrier()
    local duration_us = cuda.time(stream, function()
      for i = 1, #sends do comm:all_reduce(sends[i], recvs[i], "sum", stream) end
    end)
    rank:emit({ duration_us = duration_us })
    rank:check("sum of every element", data:is_sum(stream))
  end
end

function fragmentation.summarise(case)
  local one = case:with({ fragment_count = 1, fragment_bytes = case.total_bytes })
  local whole, time = one:slowest("duration_us"), case:slowest("duration_us")
  return {
    cycles = time.samples,
    median_duration_us = time.median,
    p95_duration_us = time.p95,
    min_duration_us = time.min,
    max_duration_us = time.max,
    cv_percent = time.cv_percent,
    slowdown_vs_one_collective = time.median / whole.median,
    median_per_collective_us = time.median / case.fragment_count,
    strictly_slower_than_one_in_all_cycles = case == one or time.min > whole.max,
  }, time
end

return fragmentation
