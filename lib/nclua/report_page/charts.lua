--- What a run's times look like: which charts there are, and their numbers.
local charts = {}

local stats = require("nclua.stats")

---@class report_page.chart
---@field kind "lines"|"bars"|"points"
---@field title string
---@field note string what is drawn, for the caption and for those who cannot see it
---@field x string label of the axis
---@field y string
---@field log? boolean logarithmic
---@field bytes? boolean x is a size
---@field labels? string[] of bars and points
---@field series { name: string, points: number[][] }[] x, y and perhaps low, high

local SIZES = { "bytes", "size_bytes", "message_bytes", "fragment_bytes" }
local MOST_SERIES = 8 -- more colours are not told apart
local MOST_CASES = 60 -- of points, and of bars

-- "bytes=8;mode=direct" as names and values; the world is one of them. What has no name,
-- "all_reduce float in", has its place for one; what is in brackets is a remark.
local function fields_of(case)
  local fields, place = { ranks = ("%d"):format(case.world_size) }, 0
  for word in case.case:gsub("%b()", ""):gmatch("[^;%s]+") do
    local name, value = word:match("^([%w_]+)=(.+)$")
    if not name then
      place = place + 1
      name, value = ("word%d"):format(place), word
    end
    fields[name] = value
  end
  return fields
end

local function size_of(fields)
  for _, name in ipairs(SIZES) do
    local bytes = tonumber(fields[name])
    if bytes and bytes > 0 then return bytes, name end
  end
end

-- Names whose values vary among cases of one size: they make the series.
local function series_names(entries)
  local by_size, varies = {}, {}
  for _, entry in ipairs(entries) do
    local first = by_size[entry.x]
    by_size[entry.x] = first or entry
    for name, value in pairs(entry.fields) do
      if first and name ~= entry.size_name and first.fields[name] ~= value then
        varies[name] = true
      end
    end
  end
  local names = {}
  for name in pairs(varies) do names[#names + 1] = name end
  table.sort(names)
  return names
end

local function label(fields, names)
  local parts = {}
  for _, name in ipairs(names) do
    local value = fields[name] or "-"
    parts[#parts + 1] = name == "ranks" and value .. " ranks" or value
  end
  return #parts > 0 and table.concat(parts, ", ") or "median"
end

local function point(x, samples)
  return { x, stats.median(samples), stats.percentile(samples, 0.05, "nearest_rank"),
    stats.percentile(samples, 0.95, "nearest_rank") }
end

-- Entries into series by their label, each sorted by x, in the order of appearance.
local function gather(entries, names)
  local series, known = {}, {}
  for _, entry in ipairs(entries) do
    local name = label(entry.fields, names)
    if not known[name] then
      known[name] = { name = name, points = {} }
      series[#series + 1] = known[name]
    end
    local points = known[name].points
    points[#points + 1] = entry.point
  end
  for _, one in ipairs(series) do
    table.sort(one.points, function(a, b) return a[1] < b[1] end)
  end
  local left_out = math.max(0, #series - MOST_SERIES)
  for i = #series, MOST_SERIES + 1, -1 do series[i] = nil end
  return series, left_out
end

local function remark(left_out)
  if left_out == 0 then return "" end
  return (" %d more series are in the table only."):format(left_out)
end

local function has_curve(entries)
  local first = entries[1] and entries[1].x
  for _, entry in ipairs(entries) do
    if entry.x ~= first then return true end
  end
  return false
end

local function lines_of(section, metric, entries)
  local series, left_out = gather(entries, series_names(entries))
  return {
    kind = "lines", title = ("%s: %s against size"):format(section, metric), log = true,
    bytes = true, x = entries[1].size_name, y = metric, series = series,
    note = "Medians over cycles, each with its slowest rank; the band is from the 5th to"
      .. " the 95th percentile. Both axes are logarithmic." .. remark(left_out),
  }
end

-- Bars stand side by side for each world.
local function bars_of(section, metric, cases)
  local labels, place, series, known = {}, {}, {}, {}
  for _, case in ipairs(cases) do
    if not place[case.case] and #labels < MOST_CASES then
      labels[#labels + 1] = case.case
      place[case.case] = #labels - 1
    end
    local name = ("%d ranks"):format(case.world_size)
    if place[case.case] then
      if not known[name] then
        known[name] = { name = name, points = {} }
        series[#series + 1] = known[name]
      end
      local points = known[name].points
      points[#points + 1] = point(place[case.case], case.samples)
    end
  end
  return {
    kind = "bars", title = ("%s: %s by case"):format(section, metric), labels = labels,
    x = "case", y = metric, series = series,
    note = "Medians over cycles, each with its slowest rank.",
  }
end

-- Each cycle beside its case's median: what is spread, what is an outlier.
local function spread_of(section, metric, cases)
  local labels, points = {}, {}
  for i = 1, math.min(#cases, MOST_CASES) do
    local case = cases[i]
    local middle = stats.median(case.samples)
    labels[i] = ("%s, %d ranks"):format(case.case, case.world_size)
    local step = math.max(1, #case.samples // 100)
    for s = 1, middle > 0 and #case.samples or 0, step do
      points[#points + 1] = { i - 1, case.samples[s] / middle }
    end
  end
  if #points <= #labels then return nil end
  return {
    kind = "points", log = true, title = ("%s: every cycle of %s"):format(section, metric),
    labels = labels, x = "case", y = "of the case's median",
    series = { { name = "a cycle", points = points } },
    note = ("Each point is a cycle's slowest rank, as a multiple of its case's median;"
      .. " %d of %d cases."):format(#labels, #cases),
  }
end

local function entries_of(cases)
  local entries = {}
  for _, case in ipairs(cases) do
    local fields = fields_of(case)
    local bytes, name = size_of(fields)
    if bytes and stats.min(case.samples) > 0 then
      entries[#entries + 1] = { x = bytes, size_name = name, fields = fields,
        point = point(bytes, case.samples) }
    end
  end
  return entries
end

---The charts of one section.
---@param section string
---@param cases past_run.case[] its cases
---@return report_page.chart[]
function charts.of_section(section, cases)
  local metrics, by_metric, list = {}, {}, {}
  for _, case in ipairs(cases) do
    if not by_metric[case.metric] then
      by_metric[case.metric], metrics[#metrics + 1] = {}, case.metric
    end
    table.insert(by_metric[case.metric], case)
  end
  for _, metric in ipairs(metrics) do
    local some = by_metric[metric]
    local entries = entries_of(some)
    local is_curve = has_curve(entries)
    if is_curve then list[#list + 1] = lines_of(section, metric, entries) end
    if not is_curve or some[1].case:find("tokens=", 1, true) then
      list[#list + 1] = bars_of(section, metric, some)
    end
  end
  local main = by_metric[metrics[#metrics]]
  if main then list[#list + 1] = spread_of(section, metrics[#metrics], main) end
  return list
end

local NOT_A_SERIES = { requested_world_size = true, backend = true, times_valid = true,
  correct = true, samples = true, cycles = true, availability = true, source = true,
  than_auto = true }

local function table_entries(rows, field)
  local entries = {}
  for _, row in ipairs(rows) do
    local x, y = tonumber(row.size_bytes), tonumber(row[field])
    if x and y and x > 0 and y == y then
      local fields = { ranks = row.world_size and ("%d"):format(row.world_size) }
      for name, value in pairs(row) do
        local is_name = type(value) == "string" or name == "channels"
        if is_name and not NOT_A_SERIES[name] then fields[name] = tostring(value) end
      end
      entries[#entries + 1] = { x = x, fields = fields, point = { x, y } }
    end
  end
  return entries
end

---A column of a chapter's own table against its size_bytes.
---@param name string of the file
---@param rows table[]
---@param field string
---@param options { y: string, log: boolean }
---@return report_page.chart? chart nil if there is nothing to draw
function charts.of_table(name, rows, field, options)
  local entries = table_entries(rows, field)
  if not has_curve(entries) then return nil end
  local names = field:find("regret") and {} or series_names(entries)
  local series, left_out = gather(entries, names)
  if #names == 0 then series[1].name = options.y end
  return {
    kind = "lines", title = ("%s against size (%s)"):format(options.y, name), bytes = true,
    log = options.log, x = "size_bytes", y = options.y, series = series,
    note = ("Column %s of %s."):format(field, name) .. remark(left_out),
  }
end

return charts
