--- AllReduce timed as nccl-tests times it, out of place and in place: the chapter measures
--- the library's own choice with it, and what a plugin makes of it.
local back_to_back = require("nclua.back_to_back")
local critical_path = require("nclua.critical_path")
local measure = require("nclua.measure")
local section = require("nclua.section")
local stats = require("nclua.stats")

local performance = {}

performance.WARMUPS = 5 -- calls, as -w 5

local SPEC = {
  columns = [[experiment replicate cycle size_bytes time_us wrong in_place_time_us
    in_place_wrong]],
  keys = "experiment size_bytes",
  case = "experiment={experiment};bytes={size_bytes}",
  metric = "time_us",
  raw_columns = [[experiment replicate cycle size_bytes time_us algbw_GBs busbw_GBs wrong
    in_place_time_us in_place_busbw_GBs in_place_wrong]],
  summary = [[experiment size_bytes samples median_time_us p95_time_us cycle_cv_percent
    min_time_us max_time_us median_busbw_GBs median_in_place_time_us correct]],
}

---Takes one sample and keeps it, as part of the world's replicate.
---@param rank section.rank
---@param calls back_to_back
function performance.sample(rank, calls)
  local row = calls:sample()
  row.replicate = rank.opt.replicate
  rank:emit(row)
  rank:check("no wrong element", row.wrong == 0 and row.in_place_wrong == 0)
end

local function prepare(rows)
  return back_to_back.merged(rows, { "requested_world_size", "world_size", "experiment",
    "replicate", "size_bytes", "cycle" })
end

local function field_of(rows, field)
  local values = {}
  for i, row in ipairs(rows) do values[i] = row[field] end
  return values
end

-- Percentiles between neighbours, as the chapter has them; replicates count together.
local function summarise(case)
  local times = field_of(case.rows, "time_us")
  local time = critical_path.statistic(times)
  time.p95 = stats.percentile(times, 0.95, "linear")
  return {
    samples = time.samples, median_time_us = time.median, p95_time_us = time.p95,
    cycle_cv_percent = time.cv_percent, min_time_us = time.min, max_time_us = time.max,
    median_busbw_GBs = stats.median(field_of(case.rows, "busbw_GBs")),
    median_in_place_time_us = stats.median(field_of(case.rows, "in_place_time_us")),
  }, time
end

---@param name string
---@param spec table title, raw_file, summary_file
---@return section without `cases` and `measure`
function performance.section(name, spec)
  local all = {}
  for field, value in pairs(SPEC) do all[field] = value end
  for field, value in pairs(spec) do all[field] = value end
  local one = section.new(name, all)
  one.prepare, one.summarise = prepare, summarise
  return one
end

---The library's own choice at every size.
local auto = performance.section("auto", {
  title = "Auto performance",
  raw_file = "auto_raw_measurements.csv", summary_file = "auto_summary.csv",
})
performance.auto = auto

function auto.cases(opt)
  local cases = {}
  for i, bytes in ipairs(measure.sizes(opt.smallest, opt.largest, 2)) do
    cases[i] =
      { experiment = "auto", replicate = opt.replicate, size_bytes = bytes }
  end
  return cases
end

function auto.measure(rank, case)
  local calls <close> = back_to_back.new(rank, case.size_bytes, rank.opt.iterations)
  calls:enqueue(performance.WARMUPS)
  for _ in rank:cycles({ warmups = 0 }) do performance.sample(rank, calls) end
end

return performance
