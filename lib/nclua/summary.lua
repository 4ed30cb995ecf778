--- summary.md: what a run found, for people.
local summary = {}

local report = require("nclua.report")

---@type string[] of summary.csv
summary.COLUMNS = { "section", "world_size", "case", "metric", "median", "p95",
  "cv_percent", "samples", "correct", "requested_world_size", "backend", "times_valid" }

local function fact(run, name)
  for _, pair in ipairs(run.facts) do
    if pair[1] == name then return pair[2] end
  end
  return "unknown"
end

local function devices(run)
  local names, order = {}, {}
  for _, pair in ipairs(run.facts) do
    local name = pair[1]:find("^device%.%d") and pair[2]:match("^[^,]*")
    if name then
      if not names[name] then order[#order + 1] = name end
      names[name] = (names[name] or 0) + 1
    end
  end
  for i, name in ipairs(order) do order[i] = ("%d x %s"):format(names[name], name) end
  return table.concat(order, ", ")
end

-- What the reader must know before the first number.
local function head(run)
  local passed = "All %d per-rank contracts passed; failures: 0."
  return table.concat({
    "# " .. run.chapter.title, "",
    ("Run ID: `%s`"):format(run.id), "",
    ("backend=%s: %s; NCCL %s (%s)."):format(run.backend, devices(run),
      fact(run, "nccl_version"), fact(run, "nccl_library")),
    passed:format(#run.contracts),
    "Critical-path samples use the slowest rank in each cycle.",
  }, "\n")
end

-- No statistic of ranks that share a device without this mark.
local function invalid_times(rows)
  for _, row in ipairs(rows) do
    if not row.times_valid then
      local text = "**Times of the world of %d are invalid: its ranks share devices.**"
      return text:format(row.world_size)
    end
  end
end

local function worlds(run)
  local sizes, order = {}, {}
  for _, world in ipairs(run.worlds) do
    local count = world.world_size
    if not sizes[count] then order[#order + 1] = ("%d"):format(count) end
    sizes[count] = true
  end
  return table.concat(order, " and ")
end

local function boundary(run)
  local items = {
    ("These are results of %s (%s) with worlds of %s ranks on one host, backend=%s, "
      .. "NCCL %s."):format(fact(run, "hostname"), devices(run), worlds(run), run.backend,
      fact(run, "nccl_version")),
  }
  if run.backend == "cpu" then
    items[2] = "backend=cpu: ranks are processes and devices are shares of one CPU. Times "
      .. "are that CPU's; they say nothing about a GPU."
  end
  table.move(run.chapter.boundary, 1, #run.chapter.boundary, #items + 1, items)
  return report.list(items)
end

---@param run run with its tables derived
---@return string markdown
function summary.encode(run)
  local parts = { head(run) }
  if #run.notes > 0 then parts[2] = report.list(run.notes) end
  for _, section in ipairs(run.chapter.sections) do
    local rows = run.tables[section.name]
    if rows and section.report then
      parts[#parts + 1] = "## " .. section.title
      parts[#parts + 1] = invalid_times(rows)
      parts[#parts + 1] = report.table(section.report, rows)
    end
  end
  for _, part in ipairs(run.parts) do
    parts[#parts + 1] = "## " .. part[1]
    parts[#parts + 1] = part[2]
  end
  parts[#parts + 1] = "## Evidence boundary"
  parts[#parts + 1] = boundary(run)
  return table.concat(parts, "\n\n") .. "\n"
end

return summary
