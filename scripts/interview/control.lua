--- Control: AllReduce as nccl-tests times it. The host's clock runs from a barrier until
--- 100 calls back to back are done; a call is a hundredth of that, and the slowest rank
--- counts (-w 20 -n 100 -a 3 -d half). Offsets rotate through the largest size.
local critical_path = require("nclua.critical_path")
local measure = require("nclua.measure")
local payload = require("nclua.payload")
local section = require("nclua.section")

local KiB, MiB = 1 << 10, 1 << 20
local FP16 = 2 -- bytes
local SMALLEST, LARGEST = 8 * KiB, MiB
local WARMUPS = 20

-- The sizes of the decode section: only these are summarised.
local IS_DECODE_SIZE =
  { [8 * KiB] = true, [64 * KiB] = true, [256 * KiB] = true, [MiB] = true }

local control = section.new("control", {
  title = "nccl-tests control for Decode-sized messages",
  columns = [[cycle size_bytes time_us wrong inplace_time_us inplace_wrong world_size
    source]],
  keys = "size_bytes source",
  case = "bytes={size_bytes}",
  metric = "time_us",
  raw_file = "nccl_tests_raw.csv",
  raw_columns = [[cycle size_bytes time_us algbw_GBs busbw_GBs wrong inplace_time_us
    inplace_algbw_GBs inplace_busbw_GBs inplace_wrong world_size source]],
  summary_name = "nccl_tests_decode_sizes",
  summary_file = "nccl_tests_summary.csv",
  summary = [[world_size size_bytes cycles median_time_us p95_time_us min_time_us
    max_time_us cv_percent median_algbw_GBs median_busbw_GBs wrong_total source]],
  report = {
    { "ranks", "world_size" },
    { "bytes", "size_bytes" },
    { "median us", "median_time_us", "%.3f" },
    { "P95 us", "p95_time_us", "%.3f" },
    { "algbw GB/s", "median_algbw_GBs", "%.3f" },
    { "busbw GB/s", "median_busbw_GBs", "%.3f" },
    { "CV", "cv_percent", "%.2f%%" },
    { "wrong", "wrong_total" },
    { "measured by", "source" },
  },
})

function control.cases()
  local cases = {}
  for i, bytes in ipairs(measure.sizes(SMALLEST, LARGEST, 2)) do
    cases[i] = { size_bytes = bytes, source = "nclua" }
  end
  return cases
end

-- The pieces of a buffer through which the calls rotate.
local function pieces(buffer, count)
  local list = {}
  for first = 1, buffer.count, count do list[#list + 1] = buffer:slice(first, count) end
  return list
end

local function enqueue(rank, calls, sends, recvs)
  for call = 1, calls do
    local i = (call - 1) % #sends + 1
    rank.comm:all_reduce(sends[i], recvs[i], "sum", rank.stream)
  end
  rank.stream:sync()
end

local function time_a_call(rank, sends, recvs)
  local calls = rank.opt.control_iterations
  rank:barrier()
  local total_us = measure.host_us(function() enqueue(rank, calls, sends, recvs) end)
  return total_us / calls
end

-- One call more, on fresh data: repeated sums in place leave nothing to compare with.
local function count_wrong(rank, send, recv, expected)
  enqueue(rank, 1, { send }, { recv })
  return (recv:compare(expected, { stream = rank.stream }))
end

function control.measure(rank, case)
  local count = case.size_bytes // FP16
  local data <close> = payload.all_reduce(rank, "f16", LARGEST // FP16)
  local sends, recvs = pieces(data.send, count), pieces(data.recv, count)
  local expected = data.expected:slice(1, count)
  enqueue(rank, math.min(WARMUPS, rank.opt.control_iterations), sends, recvs)
  for _ in rank:cycles({ warmups = 0 }) do
    local time_us = time_a_call(rank, sends, recvs)
    recvs[1]:fill(0, rank.stream)
    local wrong = count_wrong(rank, sends[1], recvs[1], expected)
    local inplace_time_us = time_a_call(rank, recvs, recvs)
    recvs[1]:copy_from(sends[1], rank.stream)
    local inplace_wrong = count_wrong(rank, recvs[1], recvs[1], expected)
    rank:emit({
      time_us = time_us, wrong = wrong,
      inplace_time_us = inplace_time_us, inplace_wrong = inplace_wrong,
    })
    rank:check("no wrong element", wrong == 0 and inplace_wrong == 0)
  end
end

-- The ranks' rows of one cycle as nccl-tests prints them.
local function merge(rows)
  local merged = {}
  for key, value in pairs(rows[1]) do merged[key] = value end
  for i = 2, #rows do
    local row = rows[i]
    merged.time_us = math.max(merged.time_us, row.time_us)
    merged.inplace_time_us = math.max(merged.inplace_time_us, row.inplace_time_us)
    merged.wrong = merged.wrong + row.wrong
    merged.inplace_wrong = merged.inplace_wrong + row.inplace_wrong
  end
  local bytes, ranks = merged.size_bytes, merged.world_size
  merged.algbw_GBs, merged.busbw_GBs =
    measure.all_reduce_bandwidth(bytes, merged.time_us, ranks)
  merged.inplace_algbw_GBs, merged.inplace_busbw_GBs =
    measure.all_reduce_bandwidth(bytes, merged.inplace_time_us, ranks)
  return merged
end

function control.prepare(rows)
  local merged = {}
  local keys = { "requested_world_size", "world_size", "size_bytes", "cycle" }
  for i, cycle in ipairs(critical_path.cases(rows, keys)) do
    merged[i] = merge(cycle.rows)
  end
  return merged
end

function control.summarise(case)
  if not IS_DECODE_SIZE[case.size_bytes] then return nil end
  local time = case:slowest("time_us")
  return {
    cycles = time.samples,
    median_time_us = time.median,
    p95_time_us = time.p95,
    min_time_us = time.min,
    max_time_us = time.max,
    cv_percent = time.cv_percent,
    median_algbw_GBs = case:slowest("algbw_GBs").median,
    median_busbw_GBs = case:slowest("busbw_GBs").median,
    wrong_total = case:sum("wrong") + case:sum("inplace_wrong"),
  }, time
end

return control
