--- What is made of the raw rows at the end: the whole table with regrets, and the parts of
--- summary.md. Needs the run's directory alone.
local csv = require("nclua.csv")
local report = require("nclua.report")
local result = require("perf.result")

local findings = {}

findings.FILE = "results.csv"

local function us(x) return x and ("%.2f"):format(x) end

local function range(low, high)
  return low and ("%.2f to %.2f"):format(low, high)
end

-- The same for every row: which of several tables it belongs to.
local WHICH = {
  { "collective", "collective" }, { "type", "type" }, { "op", "redop" },
  { "root", "root" }, { "bytes", "size_bytes" }, { "place", "place" },
}

local RESULTS = {
  { "time us", "time" }, { "95 % of the median", "interval" },
  { "GB/s", "algbw_gbps", "%.2f" },
  { "bus GB/s", "busbw_gbps", "%.2f" }, { "wrong", "wrong" }, { "ran", "ran" },
  { "known from", "known" }, { "NCCL's own us", "predicted" }, { "off", "off" },
  { "best us", "best_us", "%.2f" }, { "regret", "regret_percent", "%.1f%%" },
  { "stopped", "stop" },
}

local CLOCKS = {
  { "host us in the call", "host" }, { "device us between events", "device" },
  { "95 % of the median", "device_interval" }, { "wall us", "time" },
  { "first iteration", "first" }, { "p90", "p90" }, { "p99", "p99" }, { "CV", "cv" },
}

local RANKS = {
  { "us by rank", "rank_us" }, { "slowest", "slowest_rank" },
  { "slower than the fastest by", "skew_percent", "%.1f%%" },
}

local function with(columns)
  local all = table.move(WHICH, 1, #WHICH, 1, {})
  return table.move(columns, 1, #columns, #all + 1, all)
end

local function ran(one)
  if not one.algorithm then return "?" end
  return ("%s/%s, %s channels"):format(one.algorithm, one.protocol or "?",
    one.channels or "?")
end

-- A row as its cells are written.
local function cells(one)
  local row = {}
  for name, value in pairs(one) do row[name] = value end
  row.time, row.interval = us(result.time(one)), range(one.low_us, one.high_us)
  row.wrong = one.wrong or "unchecked"
  row.ran, row.known = ran(one), one.known_from or "?"
  row.predicted = us(one.predicted_us) or "?"
  row.off = one.off_percent and ("%+.0f%%"):format(one.off_percent) or "?"
  row.host, row.device = us(one.host_us), us(one.device_us)
  row.device_interval = range(one.device_low_us, one.device_high_us)
  row.first, row.p90, row.p99 = us(one.device_first_us), us(one.device_p90_us),
    us(one.device_p99_us) or "too few"
  row.cv = one.device_cv_percent and ("%.1f%%"):format(one.device_cv_percent)
  return row
end

local function earlier(folders)
  local all = {}
  for _, folder in ipairs(folders) do
    local rows, message = csv.read(folder .. "/" .. findings.FILE)
    if not rows then error("--against: " .. message, 0) end
    table.move(rows, 1, #rows, #all + 1, all)
  end
  return all
end

local function kind_of_time(list)
  if list[1].times_valid == false then
    return "**The times are invalid: ranks share devices.**"
  end
  if list[1].latency_us then
    return "Times are latencies: each operation was waited for."
  end
  return "Times are throughput, not latency: the time of many operations, divided by their "
    .. "number."
end

---@param run run
---@param opt table
function findings.conclude(run, opt)
  local list = result.list(run:rows("perf"), run:rows("iterations"), run.perf_context)
  if #list == 0 then return end
  result.add_regret(list, earlier(opt.against))
  run:write_table(findings.FILE, result.COLUMNS, list)
  local rows = {}
  for i, one in ipairs(list) do rows[i] = cells(one) end
  local kind = kind_of_time(list) .. "\n\n"
  run:part("Results", kind .. report.table(with(RESULTS), rows))
  if list[1].device_us then
    run:part("Three clocks", kind .. report.table(with(CLOCKS), rows))
  end
  if opt.ranks > 1 then run:part("Ranks", kind .. report.table(with(RANKS), rows)) end
end

return findings
