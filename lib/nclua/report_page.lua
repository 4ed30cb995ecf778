--- report.html: a run's story as one file that needs nothing else. Made from its
--- results.db, its tables and summary.md, and so made again for any old run.
local report_page = {}

local charts = require("nclua.report_page.charts")
local cjson = require("cjson")
local csv = require("nclua.csv")
local embedded = require("nclua.embedded")
local files = require("nclua.files")
local html = require("nclua.html")
local map = require("nclua.report_page.map")
local past_run = require("nclua.past_run")
local stats = require("nclua.stats")

report_page.FILE = "report.html"

local MOST_ROWS = 1000 -- of a table: more are in the file only
local LICENCE = "Charts by Chart.js 3, MIT licence, © Chart.js contributors."

-- What is built: parts of the body, and the charts in the order of their canvases.
local function new_page()
  return { parts = {}, charts = {}, headings = {} }
end

local function add(page, text) page.parts[#page.parts + 1] = text end

local function heading(page, title)
  local id = "part" .. #page.headings + 1
  title = html.escape(title)
  page.headings[#page.headings + 1] = ('<a href="#%s">%s</a>'):format(id, title)
  add(page, ('<h2 id="%s">%s</h2>\n'):format(id, title))
end

local function figure(page, chart)
  page.charts[#page.charts + 1] = chart
  local title = html.escape(chart.title)
  return ('<figure><div><canvas role="img" aria-label="%s. %s"></canvas></div>'
    .. "<figcaption><b>%s.</b> %s</figcaption></figure>\n"):format(title,
    html.escape(chart.note), title, html.escape(chart.note))
end

local function add_figures(page, list)
  if #list == 0 then return end
  local figures = {}
  for i, chart in ipairs(list) do figures[i] = figure(page, chart) end
  add(page, '<div class="charts">\n' .. table.concat(figures) .. "</div>\n")
end

local function add_head(page, run)
  local about = run.run
  add(page, ("<h1>%s</h1>\n"):format(html.escape(about.title)))
  local lead = ("%s %s, %s on %s: backend=%s, %s, NCCL %s, worlds of %s ranks"):format(
    about.chapter, about.run_id, about.started_utc, about.hostname or "unknown",
    about.backend, past_run.hardware(run), past_run.fact(run, "nccl_version") or "unknown",
    past_run.ranks(run))
  add(page, ('<p class="lead">%s</p>\n'):format(html.escape(lead)))
  local contracts = run.contracts
  local text = contracts.failed == 0 and ("All %d contracts held."):format(contracts.total)
    or ("%d of %d contracts FAILED."):format(contracts.failed, contracts.total)
  local class = contracts.failed > 0 and ' class="failed"' or ""
  add(page, ("<p%s>%s</p>\n"):format(class, text))
  if #run.notes > 0 then add(page, html.list(run.notes)) end
  page.place_of_navigation = #page.parts + 1
  add(page, "")
end

local STATISTICS = { "ranks", "case", "metric", "cycles", "median µs", "p5", "p95", "min",
  "max", "CV %", "valid" }

local function statistic_row(case)
  local x = case.samples
  local state = not case.all_correct and "wrong" or case.times_valid and "yes" or "no"
  return { case.world_size, case.case, case.metric, #x, stats.median(x),
    stats.percentile(x, 0.05, "nearest_rank"), stats.percentile(x, 0.95, "nearest_rank"),
    stats.min(x), stats.max(x), stats.cv_percent(x), state }
end

local function add_sections(page, run)
  local sections, by_name = {}, {}
  for _, case in ipairs(run.cases) do
    if not by_name[case.section] then
      by_name[case.section], sections[#sections + 1] = {}, case.section
    end
    table.insert(by_name[case.section], case)
  end
  for _, name in ipairs(sections) do
    local rows = {}
    for i, case in ipairs(by_name[name]) do
      if i <= MOST_ROWS then rows[i] = statistic_row(case) end
    end
    heading(page, "Times: " .. name)
    add_figures(page, charts.of_section(name, by_name[name]))
    add(page, html.table(name .. ": the slowest rank of each cycle", STATISTICS, rows))
  end
end

local DRAWN = {
  { "median_busbw_GBs", { y = "bus bandwidth, GB/s", log = true } },
  { "auto_regret_percent", { y = "regret of the library's choice, %", log = false } },
  { "selection_regret_percent", { y = "regret of the selection, %", log = false } },
}

local function figures_of_table(file, rows)
  local list = {}
  for _, drawn in ipairs(DRAWN) do
    list[#list + 1] = charts.of_table(file, rows, drawn[1], drawn[2])
  end
  return list
end

local function add_table(page, file, columns, rows)
  heading(page, file)
  add_figures(page, figures_of_table(file, rows))
  local winners = map.of(file, rows)
  if winners then add(page, winners) end
  local cells = {}
  for r = 1, math.min(#rows, MOST_ROWS) do
    cells[r] = {}
    for c, column in ipairs(columns) do
      local value = rows[r][column]
      cells[r][c] = type(value) == "boolean" and tostring(value) or value
    end
  end
  local cut = #rows > MOST_ROWS and (", the first %d of %d rows"):format(MOST_ROWS, #rows)
  add(page, html.table(file .. (cut or ""), columns, cells))
end

local function columns_of(text)
  local columns = {}
  for name in (text:match("^[^\r\n]*") or ""):gmatch("[^,]+") do
    columns[#columns + 1] = name
  end
  return columns
end

-- The chapter's own tables lie in its folder; raw rows are below it, or called so.
local function add_tables(page, run)
  for _, name in ipairs(files.list(run.folder)) do
    if name:find("^[^/]+%.csv$") and not name:find("raw") and name ~= "statistics.csv" then
      local path = run.folder .. "/" .. name
      local rows = csv.read(path)
      if rows then add_table(page, name, columns_of(assert(files.read(path))), rows) end
    end
  end
end

-- summary.md ends in it.
local function add_boundary(page, run)
  local text = files.read(run.folder .. "/summary.md") or ""
  local items = {}
  local part = text:match("\n## Evidence boundary\n(.*)$") or ""
  for item in part:gmatch("%- ([^\n]+)") do items[#items + 1] = item end
  if #items == 0 then return end
  heading(page, "Evidence boundary")
  add(page, html.list(items))
end

local function add_manifest(page, run)
  local rows = {}
  for _, name in ipairs({ "run_id", "experiment", "started_utc", "finished_utc",
    "nclua_version", "backend" }) do
    rows[#rows + 1] = { "run", name, run.run[name] }
  end
  for _, pair in ipairs(run.facts) do rows[#rows + 1] = { "fact", pair[1], pair[2] } end
  for _, pair in ipairs(run.options) do rows[#rows + 1] = { "option", pair[1], pair[2] } end
  for _, world in ipairs(run.worlds) do
    rows[#rows + 1] = { "world", world.name, ("%d ranks of %d requested, %.3f s"):format(
      world.world_size, world.requested_world_size, world.wall_s) }
  end
  heading(page, "Manifest")
  add(page, html.table("what was run, on what, with which options",
    { "what", "name", "value" }, rows))
end

local function quoted(text)
  if text:find("^[%w%-_./,:=%%+]+$") then return text end
  return "'" .. text:gsub("'", "'\\''") .. "'"
end

-- The options as they were, but where the run went and what it was called.
local function command_line(run)
  local words = {}
  for _, pair in ipairs(run.facts) do
    local name = pair[1]:match("^env%.(.+)$")
    if name then words[#words + 1] = name .. "=" .. quoted(tostring(pair[2])) end
  end
  words[#words + 1] = "nclua " .. run.run.chapter
  for _, pair in ipairs(run.options) do
    local name, value = pair[1], tostring(pair[2] or "")
    local flag = "--" .. name:gsub("_", "-")
    if value == "true" then
      words[#words + 1] = flag
    elseif value ~= "" and value ~= "false" and not value:find("^auto")
      and name ~= "root" and name ~= "run_id" then
      words[#words + 1] = flag .. " " .. quoted(value)
    end
  end
  return table.concat(words, " ")
end

local function add_commands(page, run)
  heading(page, "Run it again")
  add(page, ('<pre tabindex="0">%s</pre>\n'):format(html.escape(command_line(run))))
  add(page, "<p>What was started, with the variables set for it:</p>\n")
  add(page, ('<pre tabindex="0">%s</pre>\n'):format(
    html.escape(table.concat(run.commands, "\n"))))
  add(page, ("<footer>nclua %s. %s</footer>\n"):format(
    html.escape(run.run.nclua_version or ""), LICENCE))
end

-- Objects by their names' order: the same run makes the same bytes.
local function encode(value)
  if type(value) ~= "table" then return cjson.encode(value) end
  local parts = {}
  if value[1] ~= nil then
    for i, item in ipairs(value) do parts[i] = encode(item) end
    return "[" .. table.concat(parts, ",") .. "]"
  end
  for name, item in pairs(value) do
    parts[#parts + 1] = ('"%s":%s'):format(name, encode(item))
  end
  table.sort(parts)
  return "{" .. table.concat(parts, ",") .. "}"
end

-- "<" never stands in a script element: nothing can end it.
local function scripts(page)
  local list = {}
  for i, chart in ipairs(page.charts) do list[i] = encode(chart) end
  local data = ("[" .. table.concat(list, ",\n") .. "]"):gsub("<", "\\u003c")
  return table.concat({
    "<script>", assert(embedded.source("page:chart.js")), "</script>\n",
    '<script id="charts" type="application/json">', data, "</script>\n",
    "<script>", assert(embedded.source("page:charts")), "</script>",
  })
end

---@param run past_run
---@return string html
function report_page.encode(run)
  local page = new_page()
  add_head(page, run)
  add_sections(page, run)
  add_tables(page, run)
  add_boundary(page, run)
  add_manifest(page, run)
  add_commands(page, run)
  page.parts[page.place_of_navigation] = "<nav>\n"
    .. table.concat(page.headings, "\n") .. "\n</nav>\n"
  return html.page(run.run.title or "nclua", table.concat(page.parts), scripts(page))
end

---Writes a run's report.html.
---@param folder string a run's
---@return string? path
---@return string? message
---@return string? code
function report_page.write(folder)
  local run, message, code = past_run.open(folder)
  if not run then return nil, message, code end
  local path = run.folder .. "/" .. report_page.FILE
  local ok, why, symbol = files.write(path, report_page.encode(run))
  if not ok then return nil, why, symbol end
  return path
end

return report_page
