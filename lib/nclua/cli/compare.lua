--- nclua compare A B...: what differs between runs, and which times do.
local command = require("nclua.command")
local comparison = require("nclua.comparison")
local comparison_text = require("nclua.comparison_text")
local files = require("nclua.files")
local past_run = require("nclua.past_run")

local EXIT_FAILURE, EXIT_USAGE = 1, 2

local options = command.options("nclua compare",
  "Compares runs with the first one: settings that differ, then each time's medians, their"
  .. " ratio, its bootstrap interval and a verdict: faster, slower, no evidence."
  .. " Exit status: 0; 1 a run could not be read, or --fail-if-slower says so; 2 wrong"
  .. " usage.",
  {
    { "runs", "", "run directories or results.db; the others are compared with the first."
      .. " A1,A2,... are runs of the same thing: then each run is one sample",
      positional = "+" },
    { "level", 0.05, "of a wrong verdict anywhere among the rows", min = 1e-9 },
    { "margin", "auto", "a smaller difference is none; auto: 5% for several runs a side,"
      .. " else what starts differ by: 50% on GPUs, 150% on the CPU backend" },
    { "fail_if_slower", "", "exit status 1 if a verdict is slower, and by more than this:"
      .. " 5%" },
    { "markdown", false, "print Markdown" },
    { "html", "", "write a page, too" },
  }, arg)

local function stop(status, message)
  io.stderr:write("nclua compare: ", message, "\n")
  os.exit(status, true)
end

local function fraction(name, text)
  local value = tonumber(text:match("^([%d.]+)%%$"))
  if not value then
    stop(EXIT_USAGE, ("--%s: expected a percentage like 5%%, got '%s'"):format(name, text))
  end
  return value / 100
end

local function open_side(paths)
  local runs = {}
  for path in paths:gmatch("[^,]+") do
    local run, message = past_run.open(path)
    if not run then return stop(EXIT_FAILURE, message) end
    runs[#runs + 1] = run
  end
  if #runs == 0 then stop(EXIT_USAGE, "an empty name of a run") end
  return runs
end

local function compare_all(sides, margin)
  local results, base = {}, comparison.pool(sides[1])
  for i = 2, #sides do
    results[i] = comparison.times(base, comparison.pool(sides[i]),
      { level = options.level, margin = margin })
    if #results[i].rows == 0 then
      stop(EXIT_FAILURE, ("%s and %s have no case in common"):format(options.runs[1],
        options.runs[i]))
    end
  end
  return results
end

-- The last line says what a pipeline's log is searched for.
local function gate(results, limit)
  local count, worst = 0, nil
  for _, result in pairs(results) do
    for _, row in ipairs(result.rows) do
      if row.verdict == "slower" and row.ratio > 1 + limit then
        count = count + 1
        if not worst or row.ratio > worst.ratio then worst = row end
      end
    end
  end
  if not worst then return end
  stop(EXIT_FAILURE, ("%d rows slower by more than %g%%, the most: %s, %s, %s: %.3f times")
    :format(count, 100 * limit, worst.section, worst.case, worst.metric, worst.ratio))
end

if #options.runs < 2 then stop(EXIT_USAGE, "at least two runs are needed (try --help)") end
if options.level >= 1 then stop(EXIT_USAGE, "--level: expected less than 1") end
local margin = options.margin ~= "auto" and fraction("margin", options.margin) or nil
local limit = options.fail_if_slower ~= ""
  and fraction("fail-if-slower", options.fail_if_slower)
local sides, runs = {}, {}
for i, paths in ipairs(options.runs) do
  sides[i] = open_side(paths)
  table.move(sides[i], 1, #sides[i], #runs + 1, runs)
end
local settings, results = comparison.settings(runs), compare_all(sides, margin)
local write = options.markdown and comparison_text.markdown or comparison_text.terminal
io.write(write(sides, settings, results))
if options.html ~= "" then
  local page = comparison_text.page(sides, settings, results)
  local ok, message = files.write(options.html, page)
  if not ok then stop(EXIT_FAILURE, message) end
end
if limit then gate(results, limit) end
