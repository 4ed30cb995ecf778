--- What the model promised against what a forced sweep measured: hits, regret, and how far
--- the promised time is from the measured one.
local files = require("nclua.files")
local csv = require("nclua.csv")

local comparison = {}

comparison.TIE_PERCENT = 5 -- what is called a practical hit

comparison.COLUMNS = { "size_bytes", "auto_algorithm", "auto_protocol", "model_time_us",
  "auto_measured_median_us", "measured_best_algorithm", "measured_best_protocol",
  "measured_best_median_us", "exact_selection_hit", "practical_selection_hit_5pct",
  "selection_regret_percent", "selected_model_abs_error_percent" }

comparison.REPORT = {
  { "bytes", "size_bytes" },
  { "auto", "auto_name" },
  { "measured best", "best_name" },
  { "regret", "selection_regret_percent", "%.2f%%" },
  { "model abs error", "selected_model_abs_error_percent", "%.2f%%" },
}

---The table of a sweep that was made before: its directory's summary.csv.
---@param folder string
---@return table[]
function comparison.read(folder)
  local path = folder .. "/summary.csv"
  if not files.exists(path) then error(path .. ": there is no sweep", 0) end
  local rows, message = csv.read(path)
  if not rows then error(message, 0) end
  return rows
end

-- Times of the cells with the library's own number of channels, by size and name.
local function index(sweep)
  local times = {}
  for _, row in ipairs(sweep) do
    local is_cell = row.algorithm ~= "auto" and (row.channels or 0) == 0
    if is_cell and type(row.median_time_us) == "number" then
      local of_size = times[row.size_bytes] or {}
      times[row.size_bytes] = of_size
      of_size[row.algorithm .. "/" .. row.protocol] = row.median_time_us
    end
  end
  return times
end

local function find_best(of_size)
  local name, best
  for one, time in pairs(of_size) do
    if not best or time < best or (time == best and one < name) then
      name, best = one, time
    end
  end
  return name, best
end

local function percent_off(a, b)
  return math.abs(a / b - 1) * 100
end

local function compare(selected, of_size)
  local name = selected.algorithm .. "/" .. selected.protocol
  local measured = of_size[name]
  if not measured then return nil end
  local best_name, best = find_best(of_size)
  local regret = (measured / best - 1) * 100
  local algorithm, protocol = best_name:match("^(.*)/(.*)$")
  return {
    size_bytes = selected.size_bytes, auto_algorithm = selected.algorithm,
    auto_protocol = selected.protocol, model_time_us = selected.predicted_time_us,
    auto_measured_median_us = measured, measured_best_algorithm = algorithm,
    measured_best_protocol = protocol, measured_best_median_us = best,
    exact_selection_hit = name == best_name and 1 or 0,
    practical_selection_hit_5pct = regret < comparison.TIE_PERCENT and 1 or 0,
    selection_regret_percent = regret,
    selected_model_abs_error_percent = percent_off(selected.predicted_time_us, measured),
    auto_name = name, best_name = best_name,
  }
end

---@param candidates table[] of `model.recompute`
---@param sweep table[] rows of a sweep's summary.csv
---@return table[] rows of selection_vs_measured.csv
---@return integer[] missing sizes that the sweep does not have
function comparison.of(candidates, sweep)
  local rows, missing, times = {}, {}, index(sweep)
  for _, one in ipairs(candidates) do
    if one.logged_selected == 1 then
      local row = times[one.size_bytes] and compare(one, times[one.size_bytes])
      if row then
        rows[#rows + 1] = row
      else
        missing[#missing + 1] = one.size_bytes
      end
    end
  end
  return rows, missing
end

---@param rows table[] of selection_vs_measured.csv
---@return { sizes: integer, exact: integer, practical: integer, worst: table } totals
function comparison.totals(rows)
  local totals = { sizes = #rows, exact = 0, practical = 0 }
  for _, row in ipairs(rows) do
    totals.exact = totals.exact + row.exact_selection_hit
    totals.practical = totals.practical + row.practical_selection_hit_5pct
    local worst = totals.worst
    if not worst or row.selection_regret_percent > worst.selection_regret_percent then
      totals.worst = row
    end
  end
  return totals
end

return comparison
