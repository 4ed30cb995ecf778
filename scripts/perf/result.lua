--- From the rows of all ranks to one row of the table: the times, how sure they are, which
--- rank was slow, what ran, what was expected. Pure.
local collectives = require("perf.collectives")
local stats = require("nclua.stats")
local types = require("perf.types")

local result = {}

---The columns of results.csv, in order; a field that is nil is not known.
result.COLUMNS = {}
for name in ([[collective type redop root requested_bytes size_bytes count place run_cycle
  ranks throughput_us latency_us low_us high_us passes stop algbw_gbps busbw_gbps wrong
  host_us device_us device_low_us device_high_us device_first_us device_min_us device_max_us
  device_p50_us device_p90_us device_p95_us device_p99_us device_cv_percent iterations
  held_us algorithm protocol channels known_from predicted_us predicted_from off_percent
  slowest_rank skew_percent rank_us best_us regret_percent times_valid]]):gmatch("%S+") do
  result.COLUMNS[#result.COLUMNS + 1] = name
end

---@class perf.result fields are those of COLUMNS
---@field [string] any

local function by(rows, field)
  local groups, order = {}, {}
  for _, row in ipairs(rows) do
    local value = row[field]
    if not groups[value] then
      groups[value], order[#order + 1] = {}, value
    end
    table.insert(groups[value], row)
  end
  table.sort(order)
  return groups, order
end

local function pick(rows, field)
  local list = {}
  for i, row in ipairs(rows) do list[i] = row[field] end
  return list
end

-- How -a makes one time of the ranks' times.
local MERGE = {
  [0] = function(rows, field)
    for _, row in ipairs(rows) do
      if row.rank == 0 then return row[field] end
    end
  end,
  [1] = function(rows, field) return stats.mean(pick(rows, field)) end,
  [2] = function(rows, field) return stats.min(pick(rows, field)) end,
  [3] = function(rows, field) return stats.max(pick(rows, field)) end,
}

local LEAST_FOR_INTERVAL = 5

local function interval(values)
  if #values < LEAST_FOR_INTERVAL then return end
  return stats.bootstrap_median(values, { seed = 1 })
end

local function add_times(one, rows, average)
  local field = rows[1].latency_us and "latency_us" or "throughput_us"
  local passes, order = by(rows, "cycle")
  local times = {}
  for i, cycle in ipairs(order) do times[i] = MERGE[average](passes[cycle], field) end
  one[field], one.passes = stats.median(times), #times
  one.low_us, one.high_us = interval(times)
  one.stop = rows[1].stop
  one.host_us = rows[1].host_us and stats.median(pick(rows, "host_us"))
  one.wrong = rows[1].wrong and 0
  for _, row in ipairs(one.wrong and passes[order[1]] or {}) do
    one.wrong = one.wrong + row.wrong
  end
  return one[field], field
end

-- Every rank's own time, and who keeps the others waiting.
local function add_ranks(one, rows, field)
  local ranks, order = by(rows, "rank")
  local texts, fastest, slowest = {}, math.huge, -math.huge
  for i, rank in ipairs(order) do
    local us = stats.median(pick(ranks[rank], field))
    texts[i] = ("%.3f"):format(us)
    if us > slowest then slowest, one.slowest_rank = us, rank end
    fastest = math.min(fastest, us)
  end
  one.rank_us = table.concat(texts, " ")
  one.skew_percent = (slowest / fastest - 1) * 100
end

---Statistics over iterations, of which each counts with its slowest rank. The first one is
---apart: it waits for what the others need not wait for. A percentile is only given where
---enough samples lie beyond it.
---@param slowest number[]
---@return table<string, number>
function result.device(slowest)
  local rest = #slowest > 1 and table.move(slowest, 2, #slowest, 1, {}) or slowest
  local low, high = interval(rest)
  local function percentile(q, least)
    return #rest >= least and stats.percentile(rest, q, "nearest_rank") or nil
  end
  return {
    device_us = stats.median(rest), device_low_us = low, device_high_us = high,
    device_first_us = slowest[1], device_min_us = stats.min(rest),
    device_max_us = stats.max(rest), device_p50_us = percentile(0.5, 1),
    device_p90_us = percentile(0.9, 10), device_p95_us = percentile(0.95, 20),
    device_p99_us = percentile(0.99, 100), iterations = #slowest,
    device_cv_percent = #rest > 1 and stats.cv_percent(rest) or nil,
  }
end

---@param rows table[] of the section iterations, one row of the table
---@return number[] the slowest rank's time of each iteration
function result.slowest(rows)
  local groups, order = by(rows, "iteration")
  local times = {}
  for i, iteration in ipairs(order) do
    times[i] = stats.max(pick(groups[iteration], "device_us"))
  end
  return times
end

local KEYS = { "collective", "type", "redop", "root", "requested_bytes", "size_bytes",
  "count", "place", "run_cycle" }

---@class perf.context
---@field ranks integer
---@field average integer -a
---@field times_valid boolean false where ranks share devices
---@field witness? perf.witness

---@param rows table[] of the section perf: all ranks, all passes of one row of the table
---@param iterations table[] of the section iterations, likewise; may be empty
---@param context perf.context
---@return perf.result
function result.of(rows, iterations, context)
  local one, first = { ranks = context.ranks, times_valid = context.times_valid }, rows[1]
  for _, key in ipairs(KEYS) do one[key] = first[key] end
  local us, field = add_times(one, rows, context.average)
  add_ranks(one, rows, field)
  if #iterations > 0 then
    for name, value in pairs(result.device(result.slowest(iterations))) do
      one[name] = value
    end
    one.held_us = iterations[1].held_us
  end
  one.algbw_gbps, one.busbw_gbps = collectives.bandwidth(collectives[one.collective],
    { bytes = one.size_bytes, count = one.count }, types.find(one.type), one.ranks, us)
  for _, name in ipairs({ "algorithm", "protocol", "channels", "known_from" }) do
    one[name] = first[name]
  end
  if context.witness then context.witness:explain(one) end
  if one.predicted_us then one.off_percent = (us / one.predicted_us - 1) * 100 end
  return one
end

---@param one perf.result
---@return number us whichever kind of time it is
function result.time(one)
  return one.latency_us or one.throughput_us
end

local function group_name(one)
  return table.concat({ one.collective, one.type, one.redop, one.ranks, one.root }, "\0")
end

---Adds to each result the best time that is known for its size or a larger one, for a call
---may always carry more, and what it loses against that.
---@param list perf.result[]
---@param others? perf.result[] of earlier runs
function result.add_regret(list, others)
  local all = table.move(list, 1, #list, 1, {})
  table.move(others or {}, 1, #(others or {}), #all + 1, all)
  table.sort(all, function(a, b) return a.size_bytes > b.size_bytes end)
  local best, at = {}, {}
  for _, one in ipairs(all) do
    local group = group_name(one)
    best[group] = math.min(best[group] or math.huge, result.time(one))
    at[group .. "\0" .. one.size_bytes] = best[group]
  end
  for _, one in ipairs(list) do
    one.best_us = at[group_name(one) .. "\0" .. one.size_bytes]
    one.regret_percent = (result.time(one) / one.best_us - 1) * 100
  end
end

---The rows of whole tables, in the order of measurement.
---@param rows table[] of the section perf
---@param iterations table[]
---@param context perf.context
---@return perf.result[]
function result.list(rows, iterations, context)
  local groups, order, samples = {}, {}, {}
  local function name_of(row)
    local words = {}
    for i, key in ipairs(KEYS) do words[i] = tostring(row[key]) end
    return table.concat(words, "\0")
  end
  for _, row in ipairs(iterations) do
    local name = name_of(row)
    samples[name] = samples[name] or {}
    table.insert(samples[name], row)
  end
  for _, row in ipairs(rows) do
    local name = name_of(row)
    if not groups[name] then groups[name], order[#order + 1] = {}, name end
    table.insert(groups[name], row)
  end
  for i, name in ipairs(order) do
    order[i] = result.of(groups[name], samples[name] or {}, context)
  end
  return order
end

return result
