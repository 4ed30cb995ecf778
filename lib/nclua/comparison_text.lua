--- A comparison in words: for the terminal, as Markdown, as a page.
local comparison_text = {}

local comparison = require("nclua.comparison")
local html = require("nclua.html")
local report = require("nclua.report")
local text_table = require("nclua.text_table")

local COLUMNS = { "section", "ranks", "case", "metric", "median A", "median B", "B / A",
  "from", "to", "verdict" }
local MOST_WIDTH = 60 -- of a setting on the terminal

local function rounded(value)
  return value and ("%.4g"):format(value) or ""
end

local function cells(row)
  return { row.section, row.world_size, row.case, row.metric, row.median_a, row.median_b,
    row.ratio, row.low, row.high, row.verdict, class = row.verdict }
end

local function texts(row)
  return { row.section, ("%d"):format(row.world_size), row.case, row.metric,
    ("%.2f"):format(row.median_a), ("%.2f"):format(row.median_b),
    ("%.3f"):format(row.ratio), rounded(row.low), rounded(row.high), row.verdict }
end

local function letter(i) return string.char(64 + (i - 1) % 26 + 1) end

---What the runs are, one sentence each.
---@param sides past_run[][]
---@return string[]
function comparison_text.runs(sides)
  local list = {}
  for i, runs in ipairs(sides) do
    for _, run in ipairs(runs) do
      list[#list + 1] = ("%s: %s %s, %s (%s)"):format(letter(i), run.run.chapter,
        run.run.run_id, run.run.started_utc, run.folder)
    end
  end
  return list
end

local function counts(result)
  local count = { faster = 0, slower = 0, ["no evidence"] = 0, ["wrong results"] = 0,
    ["times invalid"] = 0 }
  for _, row in ipairs(result.rows) do count[row.verdict] = count[row.verdict] + 1 end
  return count
end

local ONE_START = " The margin is for what differs from one start of a program to the"
  .. " next, which one run a side cannot show; for a smaller one give several:"
  .. " A1,A2,... B1,B2,..."

local function rule(result)
  return ("Level %g for all %d tested rows together (Bonferroni). A verdict needs p and an"
    .. " interval of the ratio at that level, wholly beyond a margin of %g%%, and more than"
    .. " either side drifted within itself.%s"):format(result.level, result.tested,
    100 * result.margin, result.is_pooled and "" or ONE_START)
end

local function fewest(result)
  local least = math.huge
  for _, row in ipairs(result.rows) do
    if row.p then least = math.min(least, row.samples_a, row.samples_b) end
  end
  return least
end

local function unmatched(names, which)
  if #names == 0 then return nil end
  return ("Only in %s: %d rows, the first: %s."):format(which, #names, names[1])
end

---What the reader must know with the rows.
---@param result comparison.result
---@param which string the run that is compared with A
---@return string[]
function comparison_text.remarks(result, which)
  local count = counts(result)
  local list = { ("%s against A: %d faster, %d slower, %d no evidence, %d not comparable."):
    format(which, count.faster, count.slower, count["no evidence"],
      count["wrong results"] + count["times invalid"]), rule(result) }
  if result.busy then
    list[#list + 1] = result.busy .. " Interleaved runs, A1,A2,... B1,B2,..., or a --margin"
      .. " of your own give them."
  end
  local needed = comparison.samples_needed(result)
  if fewest(result) < needed then
    list[#list + 1] = ("Rows of fewer than %d samples cannot have a verdict among so many:"
      .. " more %s, or fewer sections."):format(needed,
      result.is_pooled and "runs" or "--cycles")
  end
  list[#list + 1] = unmatched(result.only_a, "A")
  list[#list + 1] = unmatched(result.only_b, which)
  return list
end

local function setting_rows(settings, runs)
  local columns, rows = { "what", "name" }, {}
  for i, side in ipairs(runs) do
    for n in ipairs(side) do
      columns[#columns + 1] = letter(i) .. (#side > 1 and n or "")
    end
  end
  for r, one in ipairs(settings) do
    rows[r] = { one.kind, one.name }
    for c = 3, #columns do rows[r][c] = one.values[c - 2] or "-" end
  end
  return columns, rows
end

local function each(runs, results, visit)
  for i = 2, #runs do visit(results[i], letter(i)) end
end

---@param runs past_run[][] by side
---@param settings table[] see `comparison.settings`
---@param results table<integer, comparison.result> from 2 on, by run
---@return string
function comparison_text.terminal(runs, settings, results)
  local parts = { table.concat(comparison_text.runs(runs), "\n") .. "\n" }
  local columns, rows = setting_rows(settings, runs)
  parts[2] = #rows == 0 and "Settings: no difference.\n"
    or "Settings that differ:\n" .. text_table.format(columns, rows,
      { indent = "  ", most_width = MOST_WIDTH })
  each(runs, results, function(result, which)
    local lines = {}
    for r, row in ipairs(result.rows) do lines[r] = texts(row) end
    parts[#parts + 1] = text_table.format(COLUMNS, lines)
    parts[#parts + 1] = table.concat(comparison_text.remarks(result, which), "\n") .. "\n"
  end)
  return table.concat(parts, "\n")
end

local function markdown_table(columns, rows)
  local described = {}
  for c, column in ipairs(columns) do described[c] = { column, c } end
  return report.table(described, rows)
end

---@param runs past_run[][] by side
---@param settings table[]
---@param results table<integer, comparison.result>
---@return string
function comparison_text.markdown(runs, settings, results)
  local parts = { "# Comparison", report.list(comparison_text.runs(runs)),
    "## Settings that differ" }
  local columns, rows = setting_rows(settings, runs)
  parts[4] = #rows > 0 and markdown_table(columns, rows) or "None."
  each(runs, results, function(result, which)
    local lines = {}
    for r, row in ipairs(result.rows) do lines[r] = texts(row) end
    parts[#parts + 1] = ("## %s against A"):format(which)
    parts[#parts + 1] = report.list(comparison_text.remarks(result, which))
    parts[#parts + 1] = markdown_table(COLUMNS, lines)
  end)
  return table.concat(parts, "\n\n") .. "\n"
end

---@param runs past_run[][] by side
---@param settings table[]
---@param results table<integer, comparison.result>
---@return string
function comparison_text.page(runs, settings, results)
  local parts = { "<h1>Comparison</h1>\n", html.list(comparison_text.runs(runs)),
    "<h2>Settings that differ</h2>\n" }
  local columns, rows = setting_rows(settings, runs)
  parts[4] = #rows > 0 and html.table("versions, hardware, variables, options", columns,
    rows) or "<p>None.</p>\n"
  each(runs, results, function(result, which)
    local lines = {}
    for r, row in ipairs(result.rows) do lines[r] = cells(row) end
    parts[#parts + 1] = ("<h2>%s against A</h2>\n"):format(which)
    parts[#parts + 1] = html.list(comparison_text.remarks(result, which))
    parts[#parts + 1] = html.table("medians over cycles of the slowest rank, µs; B / A"
      .. " above 1 is slower", COLUMNS, lines)
  end)
  return html.page("nclua compare", table.concat(parts))
end

return comparison_text
