--- The sections of a run: every pass of every rank, and every iteration by the device's
--- clock. Their tables are made from the raw rows alone.
local critical_path = require("nclua.critical_path")
local result = require("perf.result")
local section = require("nclua.section")
local worker = require("perf.worker")

local KEYS = "collective type redop root requested_bytes size_bytes count place"

local sections = {}

local function time_field(case)
  return case.rows[1].latency_us and "latency_us" or "throughput_us"
end

sections.perf = section.new("perf", {
  title = "Times by the host's clock",
  columns = KEYS .. [[ cycle run_cycle pass throughput_us latency_us host_us wrong stop
    algorithm protocol channels known_from]],
  keys = KEYS,
  case = worker.case_name,
  metric = time_field,
  summary = KEYS .. [[ passes median_us p95_us min_us max_us cv_percent median_host_us
    wrong_total time_is correct]],
})

-- Rows that were not checked are neither right nor wrong.
local function correctness(case)
  if case.rows[1].wrong == nil then return "unchecked" end
  return case.correct
end

function sections.perf.summarise(case)
  local field = time_field(case)
  local time, wrong = case:slowest(field), 0
  for _, row in ipairs(case.rows) do wrong = wrong + (row.wrong or 0) end
  local correct = correctness(case)
  case.correct = correct
  return {
    passes = time.samples, median_us = time.median, p95_us = time.p95, min_us = time.min,
    max_us = time.max, cv_percent = time.cv_percent, correct = correct,
    wrong_total = wrong,
    median_host_us = case.rows[1].host_us and case:slowest("host_us").median,
    time_is = field:gsub("_us$", ""),
  }, time
end

sections.iterations = section.new("iterations", {
  title = "Iterations by the device's clock",
  columns = KEYS .. " cycle run_cycle iteration iterations device_us held_us wrong",
  keys = KEYS,
  case = worker.case_name,
  metric = "device_us",
  summary = KEYS .. [[ iterations device_us device_low_us device_high_us device_first_us
    device_min_us device_p50_us device_p90_us device_p95_us device_p99_us device_max_us
    device_cv_percent held_us correct]],
})

-- Each cycle of -N has a first iteration; all but the first cycle's are left out.
function sections.iterations.summarise(case)
  local times = case:slowest_of("device_us")
  local count = case.rows[1].iterations
  local kept = { times[1] }
  for i, us in ipairs(times) do
    if (i - 1) % count > 0 then kept[#kept + 1] = us end
  end
  local row = result.device(kept)
  row.correct, row.held_us = correctness(case), case.rows[1].held_us
  case.correct = row.correct
  return row, critical_path.statistic(kept)
end

for _, one in pairs(sections) do
  function one.cases() return {} end -- perf makes its worlds itself
end

return sections
