--- The JSON of nccl-tests -J: file versions 1 (2.17.3) to 3 (2.19.6). It is written at the
--- end and never flushed, so a killed run leaves a part: complete rows are kept.
local lenient_json = require("nclua.parse.lenient_json")
local rows = require("nclua.parse.nccl_tests.rows")

local json = {}

-- Booleans are written as words, NaN as a string.
local function number(value)
  if type(value) == "number" then return value end
  return type(value) == "string" and (rows.value(value)) or nil
end

local function integer(value)
  return math.tointeger(number(value))
end

local function text(value) return type(value) == "string" and value or nil end

local function list(value) return type(value) == "table" and value or {} end

local PER_ITERATION = {
  "skipped_iterations", "min_us", "max_us", "avg_us", "p50_us", "p95_us", "p99_us",
  "stdev_us",
}

local function numbers(value)
  local result = {}
  for i, one in ipairs(list(value)) do result[i] = number(one) end
  return result
end

local function half_of(own, per_iteration)
  local half = {
    time_us = number(own.time), cputime_us = number(own.cpu_time),
    algbw_gbps = number(own.alg_bw), busbw_gbps = number(own.bus_bw),
    wrong = number(own.nwrong),
  }
  if type(per_iteration) ~= "table" then return half end
  for _, name in ipairs(PER_ITERATION) do half[name] = number(per_iteration[name]) end
  half.cv_percent = number(per_iteration.cv_pct)
  half.times_us = numbers(per_iteration.times_us)
  local processes = per_iteration.per_process_max_times_us
  if type(processes) == "table" then
    half.per_process_max_times_us = {}
    for i, times in ipairs(processes) do
      half.per_process_max_times_us[i] = numbers(times)
    end
  end
  return half
end

local function row_of(run, own)
  local size, count = integer(own.size), integer(own.count)
  if not size or not count or not text(own.type) or type(own.out_of_place) ~= "table" then
    return nil
  end
  local row = {
    size_bytes = size, count = count, type = own.type, redop = text(own.redop),
    root = integer(own.root), actual_iterations = integer(own.actual_iterations),
    out_of_place = half_of(own.out_of_place, own.out_of_place_per_iter),
  }
  if type(own.in_place) == "table" then
    row.in_place = half_of(own.in_place, own.in_place_per_iter)
  end
  row.cycle = rows.cycle(run, row)
  return row
end

local CONFIG = {
  threads = "nthreads", gpus = "ngpus", min_bytes = "minimum_bytes",
  max_bytes = "maximum_bytes", step_factor = "step_factor", step_bytes = "step_bytes",
  warmup_iters = "warmup_iters", iters = "iterations",
  agg_iters = "aggregated_iterations", validation = "validation", graph = "graph",
  per_iter_skip = "per_iter_skip",
}

local function device_of(own)
  return {
    rank = integer(own.rank) or 0, group = integer(own.group), pid = integer(own.pid),
    host = text(own.hostname) or "?", device = integer(own.device) or 0,
    bus_id = text(own.device_hex), name = text(own.device_info),
  }
end

-- The file holds the whole environment, secrets too: only NCCL's variables go on.
local function nccl_variables(env)
  local kept = {}
  for _, one in ipairs(list(env)) do
    if type(one) == "string" and one:find("^NCCL_") then kept[#kept + 1] = one end
  end
  return #kept > 0 and table.concat(kept, " ") or nil
end

local function head_of(root)
  local arguments, config = list(root.args), list(root.config)
  local program = text(arguments[1])
  local run = {
    config = {}, devices = {}, rows = {}, labels = {}, failures = {}, arguments = arguments,
    json_version = integer(root.version), library = integer(root.nccl_version),
    program = program and program:gsub("^.*/", ""), env = nccl_variables(root.env),
    started = text(root.start_time), ended = text(root.end_time),
  }
  for name, theirs in pairs(CONFIG) do run.config[name] = integer(config[theirs]) end
  for _, one in ipairs(list(config.devices)) do
    if type(one) == "table" then table.insert(run.devices, device_of(one)) end
  end
  return run
end

local STATUS = { ["true"] = "OK", ["false"] = "FAILED" }

local function set_end(run, root)
  local bounds, average = list(root.out_of_bounds), list(root.average_bus_bandwidth)
  run.out_of_bounds = integer(bounds.count)
  run.status = STATUS[bounds.okay]
  -- up to 2.17.8 these two names are misspelt
  if not next(average) then average = list(root.average_bus_bandwidith) end
  run.average_busbw_gbps = number(average.bandwidth) or number(average.bandwidith)
  for _, message in ipairs(list(root.errors)) do
    if text(message) and message ~= "" then table.insert(run.failures, message) end
  end
  run.complete = run.ended ~= nil
end

--- Is this the beginning of such a file?
---@param head string
---@return boolean
function json.is_one(head)
  return head:find('^%s*{%s*"version"%s*:%s*%d+%s*,%s*"start_time"') ~= nil
end

--- Reads a file.
---@param source string
---@return nclua.nccl_tests.run? run
---@return table[]|nil warnings
---@return string? message
function json.read(source)
  local root, problem = lenient_json.parse(source)
  if type(root) ~= "table" or not root.version then
    return nil, nil, problem or "not nccl-tests JSON"
  end
  local run, warnings = head_of(root), {}
  for i, own in ipairs(list(root.results)) do
    local row = type(own) == "table" and row_of(run, own)
    if row then
      table.insert(run.rows, row)
    else
      table.insert(warnings, { line = 1, why = "a row that is incomplete",
        text = "results[" .. i .. "]" })
    end
  end
  set_end(run, root)
  if problem then
    table.insert(warnings, { line = 1, why = "incomplete JSON", text = problem })
  end
  return run, warnings
end

return json
