--- What a sweep is made for: the fastest way at each size, which others may be as fast, and
--- what the library's own choice costs.
local winners = {}

local combination = require("nclua.combination")
local contest = require("nclua.contest")
local critical_path = require("nclua.critical_path")
local size = require("nclua.size")

---@type string[]
winners.COLUMNS = { "size_bytes", "auto_algorithm", "auto_protocol", "auto_channels",
  "auto_time_us", "selected_time_us", "best", "best_algorithm", "best_protocol",
  "best_channels", "best_time_us", "as_fast", "auto_time_ratio", "auto_time_ratio_low",
  "auto_time_ratio_high", "than_auto", "auto_regret_percent", "selection_regret_percent",
  "unavailable", "world_size", "requested_world_size", "backend", "times_valid" }

winners.REPORT = {
  { "bytes", "size_bytes" },
  { "auto chose", "auto_name" },
  { "auto us", "auto_time_us", "%.2f" },
  { "fastest", "best" },
  { "us", "best_time_us", "%.2f" },
  { "as fast", "as_fast" },
  { "auto/fastest", "auto_time_ratio", "%.3f" },
  { "interval", "interval" },
  { "fastest is", "than_auto" },
}

-- A sweep's rows of one size: what was measured, by name, and what is not there.
local function sort_out(rows)
  local entries, auto, missing = {}, nil, {}
  local keys = { "algorithm", "protocol", "channels" }
  for _, case in ipairs(critical_path.cases(rows, keys)) do
    local name = combination.name(case)
    local entry = { name = name, case = case }
    if case.outcome ~= "measured" then
      missing[#missing + 1] = name
    else
      entry.times = case:slowest_of("time_us")
      if name == "auto" then auto = entry else entries[#entries + 1] = entry end
    end
  end
  return entries, auto, missing
end

local function names(entries)
  local list = {}
  for i, entry in ipairs(entries) do list[i] = entry.name end
  return table.concat(list, " ")
end

local function regret(time, best)
  return time and (time / best - 1) * 100
end

-- What the forced sweep says of the cell that the library chooses by itself.
local function time_of(entries, choice)
  for _, entry in ipairs(entries) do
    local one = entry.case
    if one.algorithm == choice.algorithm and one.protocol == choice.protocol
      and one.channels == 0 then
      return entry.median
    end
  end
end

local function new_row(first, choice)
  return {
    size_bytes = first.size_bytes, auto_algorithm = choice.algorithm,
    auto_protocol = choice.protocol, auto_channels = choice.channels,
    world_size = first.world_size, requested_world_size = first.requested_world_size,
    backend = first.backend, times_valid = first.times_valid,
  }
end

local UNKNOWN = { algorithm = "?", protocol = "?" }

-- One size's row, and its ranking.
local function judge(rows, choice, options)
  local entries, auto, missing = sort_out(rows)
  local row = new_row(rows[1], choice)
  row.unavailable = table.concat(missing, " ")
  if #entries == 0 or not auto then return row, {}, {} end
  local is_paired = entries[1].case.steering == "live"
  local given = { confidence = options.confidence, is_paired = is_paired }
  local ranking, tied = contest.rank(entries, given)
  local best = ranking[1]
  local result = contest.compare(auto.times, best.times, given)
  auto.median = critical_path.statistic(auto.times).median
  row.auto_time_us, row.best_time_us = auto.median, best.median
  row.best, row.as_fast = best.name, names(tied)
  row.best_algorithm, row.best_protocol = best.case.algorithm, best.case.protocol
  row.best_channels = best.case.channels
  row.auto_time_ratio, row.than_auto = result.ratio, result.verdict
  row.auto_time_ratio_low, row.auto_time_ratio_high = result.low, result.high
  row.auto_regret_percent = regret(auto.median, best.median)
  row.selected_time_us = time_of(entries, choice)
  row.selection_regret_percent = regret(row.selected_time_us, best.median)
  return row, ranking, tied, auto
end

---@class winners.result
---@field rows table[] of winners.csv
---@field rankings table<integer, contest.entry[]> by bytes
---@field tied table<integer, contest.entry[]> by bytes
---@field autos table<integer, contest.entry> by bytes: the library's own choice

---@param rows table[] of a sweep
---@param choices table<integer, capture.choice> what the library chose
---@param options { confidence: number }
---@return winners.result
function winners.of(rows, choices, options)
  local result = { rows = {}, rankings = {}, tied = {}, autos = {} }
  local groups = critical_path.cases(rows, { "size_bytes" })
  table.sort(groups, function(a, b) return a.size_bytes < b.size_bytes end)
  for i, group in ipairs(groups) do
    local bytes = group.size_bytes
    result.rows[i], result.rankings[bytes], result.tied[bytes], result.autos[bytes] =
      judge(group.rows, choices[bytes] or UNKNOWN, options)
  end
  return result
end

-- The way that won most often comes first.
local function lines_of(result)
  local wins, list = {}, {}
  for _, ranking in pairs(result.rankings) do
    for i, entry in ipairs(ranking) do
      if not wins[entry.name] then list[#list + 1], wins[entry.name] = entry.name, 0 end
      if i == 1 then wins[entry.name] = wins[entry.name] + 1 end
    end
  end
  table.sort(list, function(a, b)
    if wins[a] ~= wins[b] then return wins[a] > wins[b] end
    return a < b
  end)
  return list
end

local function mark(ranking, tied, name)
  if ranking[1] and ranking[1].name == name then return "#" end
  for _, entry in ipairs(tied) do
    if entry.name == name then return "+" end
  end
  for _, entry in ipairs(ranking) do
    if entry.name == name then return "." end
  end
  return " "
end

local LEGEND = "one column a size, %s to %s; # fastest, + not really slower, . slower, "
  .. "blank: not there"

---The winners as a picture in text: one line a way, one column a size.
---@param result winners.result
---@return string
function winners.map(result)
  local lines = {}
  for _, name in ipairs(lines_of(result)) do
    local marks = {}
    for i, row in ipairs(result.rows) do
      local bytes = row.size_bytes
      marks[i] = mark(result.rankings[bytes], result.tied[bytes], name)
    end
    lines[#lines + 1] = ("%-22s|%s|"):format(name, table.concat(marks))
  end
  local first, last = result.rows[1], result.rows[#result.rows]
  lines[#lines + 1] =
    LEGEND:format(size.format(first.size_bytes), size.format(last.size_bytes))
  return table.concat(lines, "\n")
end

---Rows for summary.md.
---@param result winners.result
---@return table[]
function winners.report_rows(result)
  local rows = {}
  for i, row in ipairs(result.rows) do
    local copy = { interval = "" }
    for name, value in pairs(row) do copy[name] = value end
    copy.auto_name = ("%s/%s"):format(row.auto_algorithm, row.auto_protocol)
    if row.best then
      copy.interval =
        ("%.3f to %.3f"):format(row.auto_time_ratio_low, row.auto_time_ratio_high)
    end
    rows[i] = copy
  end
  return rows
end

return winners
