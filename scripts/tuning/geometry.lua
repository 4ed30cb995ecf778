--- The kernels that run while the override is in force: how many blocks, which is how many
--- channels. Seen by nsys where it works, by nclua's own tracer elsewhere.
local cost_model = require("nclua.cost_model")
local profile = require("nclua.profile")
local programs = require("nclua.programs")
local stats = require("nclua.stats")

local geometry = {}

local CALLS = 5
local FILE = "artifacts/plugin_profile.sqlite"
local KERNELS = "ncclDevKernel_AllReduce*"

local COLUMNS = { "message_bytes", "selected_algorithm", "selected_algorithm_id",
  "selected_protocol", "selected_protocol_id", "requested_channels", "kernel_names",
  "kernel_instances", "grid_x_values", "block_x_values", "median_kernel_us",
  "p95_kernel_us", "profile_tool", "profile_file" }

---@class tuning.geometry
---@field source string who took the profile
---@field grids integer[] distinct gridX

---Runs the watched program under a profiler.
---@param run run
---@param ranks integer
---@param env ranks.env of the deployment; false removes
---@return string? tool
---@return string? why there is no profile
function geometry.measure(run, ranks, env)
  local set, unset = {}, {}
  for name, value in pairs(env) do
    if value then set[name] = value else unset[#unset + 1] = name end
  end
  local program = ("require('tuning.watched').main(%d, %d, %d)"):format(ranks,
    run.opt.override_bytes, CALLS)
  local argv = { programs.own(), "--backend", run.backend, "-e", program }
  run:command(table.concat(argv, " "), env)
  local result, message = profile.run(argv, { file = run:path(FILE), env = set,
    unset = unset, tool = run.opt.skip_nsys and "nclua" or "auto", timeout_s = 120 })
  if not result then return nil, message end
  if result.nsys_message then run:fact("nsys", result.nsys_message) end
  if result.process.ok then return result.tool end
  return nil, ("the profiled program failed: %s%s"):format(result.process.stderr,
    result.process.stdout)
end

local function distinct(kernels, field)
  local seen, list = {}, {}
  for _, kernel in ipairs(kernels) do
    local value = kernel[field]
    if value ~= nil and not seen[value] then list[#list + 1], seen[value] = value, true end
  end
  table.sort(list)
  return list
end

local function index_of(list, name)
  for i, one in ipairs(list) do
    if one == name then return i - 1 end
  end
end

---Writes plugin_kernel_geometry.csv from the profile.
---@param run run
---@param tool string who took it
---@return tuning.geometry? profile
---@return string? why there is none
function geometry.write(run, tool)
  local kernels, message = profile.kernels(run:path(FILE), KERNELS)
  if not kernels then return nil, message end
  if #kernels == 0 then return nil, "no AllReduce kernel in the profile" end
  local one, times = run.opt.override, {}
  for i, kernel in ipairs(kernels) do
    times[i] = (kernel.end_ns - kernel.start_ns) / 1000
  end
  local grids = distinct(kernels, "grid_x")
  run:write_table("plugin_kernel_geometry.csv", COLUMNS, { {
    message_bytes = run.opt.override_bytes, selected_algorithm = one.algorithm,
    selected_algorithm_id = index_of(cost_model.names.ALGORITHMS, one.algorithm),
    selected_protocol = one.protocol,
    selected_protocol_id = index_of(cost_model.names.PROTOCOLS, one.protocol),
    requested_channels = one.channels,
    kernel_names = table.concat(distinct(kernels, "name"), ";"),
    kernel_instances = #kernels, grid_x_values = table.concat(grids, ","),
    block_x_values = table.concat(distinct(kernels, "block_x"), ","),
    median_kernel_us = stats.median(times),
    p95_kernel_us = stats.percentile(times, 0.95, "linear"), profile_tool = tool,
    profile_file = FILE,
  } })
  return { source = tool, grids = grids }
end

return geometry
