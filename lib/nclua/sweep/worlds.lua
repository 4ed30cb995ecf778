--- The worlds of a sweep: one, steered call by call; or, where the library loads no tuner
--- plugin, one for each combination, chosen by NCCL_ALGO and NCCL_PROTO.
local sweep_worlds = {}

local clean_environment = require("nclua.clean_environment")
local combination = require("nclua.combination")
local ranks = require("nclua.ranks")
local steering = require("nclua.steering")
local sweep = require("nclua.sweep")
local worlds = require("nclua.worlds")

local function merged(base, more)
  local all = {}
  for name, value in pairs(base) do all[name] = value end
  for name, value in pairs(more) do all[name] = value end
  return all
end

---The environment of all worlds of a chapter: clean, but for what the options keep.
---@param run run
---@return ranks.env
function sweep_worlds.environment(run)
  local unset, stayed = clean_environment.of(run.opt.keep_env)
  for _, pair in ipairs(stayed) do run:fact(pair[1], pair[2]) end
  return unset
end

---For what starts worlds one after another, each with an environment of its own. Raises
---where a launcher has made the ranks.
---@param name string who says so
function sweep_worlds.must_fork(name)
  local launcher = ranks.launcher()
  if not launcher then return end
  error(("%s makes several worlds of its own: start it without %s"):format(name,
    launcher.launcher), 0)
end

local function forcing(one)
  return {
    NCCL_ALGO = one.algorithm, NCCL_PROTO = one.protocol,
    NCCL_MIN_NCHANNELS = one.channels > 0 and one.channels or nil,
    NCCL_MAX_NCHANNELS = one.channels > 0 and one.channels or nil,
  }
end

-- What a library says that was asked for something it has not; the last is the CPU's.
local REFUSALS = { "ncclInvalidUsage", "ncclInternalError", "ncclInvalidArgument" }

local function is_refusal(message)
  for _, code in ipairs(REFUSALS) do
    if message:find(code, 1, true) then return true end
  end
  return false
end

-- The row that says, for every size, that there was nothing to measure.
local function keep_unavailable(run, section, name, requested, one)
  local count, rows = worlds.shrink(run, name, requested), {}
  for i, case in ipairs(section.cases(run.opt, count)) do
    rows[i] = { size_bytes = case.size_bytes, algorithm = one.algorithm,
      protocol = one.protocol, channels = one.channels, cycle = 0, rank = 0,
      world_size = count, steering = "environment", outcome = "unavailable",
      time_us = 0 / 0 }
  end
  worlds.keep(run, { name = name, requested_world_size = requested, world_size = count,
    wall_s = 0 }, { [0] = { [section.name] = rows } })
end

local function measure_alone(run, section, world, one)
  local name = ("%s_%s"):format(world.name, combination.name(one):gsub("/", "_"))
  local ok, message = pcall(run.world, run, name, world.ranks, { section },
    { env = merged(world.env, forcing(one)),
      values = merged(world.values or {}, { only = one }) })
  if ok then return end
  if not is_refusal(message) then error(message, 0) end
  keep_unavailable(run, section, name, world.ranks, one)
end

local ALONE = "every combination was measured in a world of its own (NCCL_ALGO, "
  .. "NCCL_PROTO), so that differences from one start to the next are in the numbers"
local NO_TUNER = "the library loads no tuner plugin: " .. ALONE
local LAUNCHED = "the library loads no tuner plugin, and a launcher's processes cannot be "
  .. "started again: nothing but the library's own choice was measured"

---@class sweep.world
---@field name string
---@field ranks integer
---@field env ranks.env
---@field values? table<string, any>

---Measures in one world whose ranks can be steered, whether or not the library follows.
---@param run run
---@param section section
---@param world sweep.world
function sweep_worlds.measure_live(run, section, world)
  run:world(world.name, world.ranks, { section },
    { env = merged(world.env, steering.environment()), values = world.values })
end

---Measures a sweep.
---@param run run
---@param section section made by `sweep.section`
---@param world sweep.world
function sweep_worlds.measure(run, section, world)
  if run.opt.alone then
    run:world(world.name, world.ranks, { section },
      { env = world.env, values = world.values })
  else
    sweep_worlds.measure_live(run, section, world)
  end
  if run:known("steering") ~= "none" then return end
  if ranks.launcher() then return run:note(LAUNCHED) end
  run:note(run.opt.alone and ALONE or NO_TUNER)
  for _, one in ipairs(sweep.combinations(run.opt)) do
    measure_alone(run, section, world, one)
  end
end

return sweep_worlds
