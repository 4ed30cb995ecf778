--- Tables of nccl-tests, from text or JSON, into a document.
local tests_tables = {}

local RUN_COLUMNS = {
  "run", "title", "env", "program", "collective", "ranks", "nodes", "version", "library",
  "rows", "out_of_bounds", "status", "average_busbw_gbps", "complete",
}

local ROW_COLUMNS = {
  "run", "collective", "size_bytes", "count", "type", "redop", "root", "cycle", "time_us",
  "algbw_gbps", "busbw_gbps", "wrong", "error", "in_place_time_us", "in_place_algbw_gbps",
  "in_place_busbw_gbps", "in_place_wrong", "in_place_error",
}

-- These columns exist only if a row has them.
local EXTRA = {
  "cputime_us", "min_us", "max_us", "avg_us", "p50_us", "p95_us", "p99_us", "stdev_us",
  "cv_percent", "skipped_iterations",
}

local function row_of(number, run, own, extra)
  local row = {
    run = number, collective = run.collective, size_bytes = own.size_bytes,
    count = own.count, type = own.type, redop = own.redop, root = own.root,
    cycle = own.cycle, timestamp = own.timestamp,
  }
  for prefix, half in pairs({ [""] = own.out_of_place, in_place_ = own.in_place or {} }) do
    for _, name in ipairs({ "time_us", "algbw_gbps", "busbw_gbps", "wrong", "error" }) do
      row[prefix .. name] = half[name]
    end
    for _, name in ipairs(EXTRA) do
      if half[name] ~= nil then
        row[prefix .. name] = half[name]
        extra[prefix .. name] = true
      end
    end
  end
  if own.timestamp then extra.timestamp = true end
  return row
end

local function columns_with(extra)
  local columns = table.move(ROW_COLUMNS, 1, #ROW_COLUMNS, 1, {})
  for _, prefix in ipairs({ "", "in_place_" }) do
    for _, name in ipairs(EXTRA) do
      if extra[prefix .. name] then columns[#columns + 1] = prefix .. name end
    end
  end
  if extra.timestamp then columns[#columns + 1] = "timestamp" end
  return columns
end

-- Each iteration's time, where JSON has them.
local function iterations_of(number, own, into)
  for _, placement in ipairs({ "out_of_place", "in_place" }) do
    local half = own[placement] or {}
    for i, time in ipairs(half.times_us or {}) do
      into[#into + 1] = { run = number, size_bytes = own.size_bytes, cycle = own.cycle,
        placement = placement, iteration = i, time_us = time }
    end
  end
end

local function add_runs(doc, runs)
  local list, devices, failures = {}, {}, {}
  for number, run in ipairs(runs) do
    local row = { run = number, rows = #run.rows }
    for _, column in ipairs(RUN_COLUMNS) do
      if row[column] == nil then row[column] = run[column] end
    end
    list[number] = row
    for _, device in ipairs(run.devices) do
      device.run = number
      devices[#devices + 1] = device
    end
    for _, text in ipairs(run.failures) do
      failures[#failures + 1] = { run = number, text = text }
    end
  end
  doc:table("runs", RUN_COLUMNS, list)
  doc:table("failures", { "run", "text" }, failures)
  doc:table("devices", { "run", "rank", "group", "pid", "host", "device", "bus_id",
    "name" }, devices)
end

--- Adds runs, their rows, and what could not be read of them.
---@param doc nclua.read.document
---@param result nclua.nccl_tests.result
function tests_tables.add(doc, result)
  local rows, iterations, extra = {}, {}, {}
  for number, run in ipairs(result.runs) do
    for _, own in ipairs(run.rows) do
      rows[#rows + 1] = row_of(number, run, own, extra)
      iterations_of(number, own, iterations)
    end
  end
  doc:table("rows", columns_with(extra), rows)
  add_runs(doc, result.runs)
  doc:table("iterations", { "run", "size_bytes", "cycle", "placement", "iteration",
    "time_us" }, iterations)
  for _, warning in ipairs(result.warnings) do
    doc:problem(warning.why, warning.text, warning.line)
  end
  local ignored = result.ignored
  for _, sample in ipairs(ignored.samples) do
    doc:problem("neither a log nor a table", sample.text, sample.line)
  end
  doc.problem_count = doc.problem_count + ignored.count - #ignored.samples
end

return tests_tables
