--- The proof that a tuner plugin's override took effect: times of the library's own choice
--- and of the override in turns, then calls that only the plugin's environment steers, with
--- everybody watching who could contradict.
local back_to_back = require("nclua.back_to_back")
local capture = require("nclua.capture")
local combination = require("nclua.combination")
local contest = require("nclua.contest")
local critical_path = require("nclua.critical_path")
local override = require("nclua.override")
local performance = require("tuning.performance")
local report = require("nclua.report")
local shuffle = require("nclua.shuffle")
local geometry = require("tuning.geometry")
local size = require("nclua.size")
local steering = require("nclua.steering")
local worlds = require("nclua.worlds")

local proof = {}

local WATCHED_CALLS = 5

proof.WITNESS_COLUMNS = { "witness", "says", "agrees" }

---What the times are called: auto_64M, plugin_tree_simple_ch2.
---@param opt table
---@return string auto
---@return string forced
function proof.experiments(opt)
  local one = opt.override
  local name = ("plugin_%s_%s"):format(one.algorithm:lower(), one.protocol:lower())
  if one.channels > 0 then name = ("%s_ch%d"):format(name, one.channels) end
  return "auto_" .. size.format(opt.override_bytes):gsub("[ iB]", ""), name
end

local timed = performance.section("plugin", {
  title = "Plugin override",
  raw_file = "plugin_raw_measurements.csv", summary_file = "plugin_summary.csv",
  report = {
    { "policy", "experiment" },
    { "median us", "median_time_us", "%.3f" },
    { "P95 us", "p95_time_us", "%.3f" },
    { "CV", "cycle_cv_percent", "%.2f%%" },
    { "busbw GB/s", "median_busbw_GBs", "%.2f" },
  },
})
proof.timed = timed

function timed.cases(opt)
  local auto = proof.experiments(opt)
  return { { experiment = auto, replicate = 1, size_bytes = opt.override_bytes } }
end

-- Nothing is measured in the override's name where the library does not take it.
local function ways(rank, steer, calls, case)
  local auto, forced = proof.experiments(rank.opt)
  local list = { { name = auto, choice = combination.AUTO } }
  local outcome = steer:probe(rank.opt.override, function() calls:enqueue(1) end)
  rank:fact("override", outcome)
  if outcome == "forced" then
    list[2] = { name = forced, choice = rank.opt.override }
  end
  for _, way in ipairs(list) do
    way.case = { experiment = way.name, replicate = 1, size_bytes = case.size_bytes }
  end
  return list
end

function timed.measure(rank, case)
  local steer <close> = steering.open(rank)
  local calls <close> = back_to_back.new(rank, case.size_bytes, rank.opt.iterations)
  local list = ways(rank, steer, calls, case)
  calls:enqueue(performance.WARMUPS)
  for cycle in rank:cycles({ warmups = 0 }) do
    for _, way in ipairs(shuffle.order(list, rank.opt.seed, cycle)) do
      steer:force(way.choice)
      rank:enter(way.case)
      performance.sample(rank, calls)
    end
  end
end

---The environment that a deployment would set.
---@param run run
---@return ranks.env
function proof.deployment(run)
  local opt = run.opt
  local env = steering.environment()
  env.NCLUA_TUNER_FORCE = ("all_reduce:%s:%d-%d"):format(combination.name(opt.override),
    opt.override_from, opt.override_to)
  return env
end

-- A communicator uses no more channels than it was made with, whatever a tuner says.
local function enough_channels(run)
  local result = run:is_selected(run.chapter:section("selection"))
    and capture.read(run.folder, "selection")
  local one = result and result.log.communicators[1]
  local had, wanted = one and one.channels and one.channels.coll, run.opt.override.channels
  if not had or had >= wanted then return {} end
  run:note(("the communicator has %d channels and the override asks for %d: the proof's "
    .. "worlds have NCCL_MIN_NCHANNELS=%d"):format(had, wanted, wanted))
  return { NCCL_MIN_NCHANNELS = wanted }
end

---Measures the times, then makes the calls that are watched.
---@param run run
---@param witness section of `capture.section`
---@param world { ranks: integer, env: ranks.env }
function proof.measure(run, witness, world)
  local opt = run.opt
  local env, forcing = enough_channels(run), proof.deployment(run)
  for name, value in pairs(world.env) do env[name] = env[name] or value end
  for name, value in pairs(steering.environment()) do env[name] = value end
  run:world("plugin", world.ranks, { timed },
    { env = env, values = { cycles = opt.plugin_cycles, replicate = 1 } })
  for name, value in pairs(forcing) do env[name] = value end
  capture.measure(run, witness, { name = "witness", ranks = world.ranks, env = env,
    values = { sizes = { opt.override_bytes }, calls = WATCHED_CALLS } })
  if not run:is_selected(witness) then return end
  env.NCCL_DEBUG = "WARN"
  local tool, why = geometry.measure(run, worlds.shrink(run, "profile", world.ranks), env)
  run:fact("profile", tool or (why:gsub("%s+", " ")))
  run.profile_tool = tool
end

-- The plugin's line in the library's log, in any version's words.
local function loaded_line(log)
  for _, line in ipairs(log.plugins) do
    local text = line.text:lower()
    if text:find("tuner", 1, true) and text:find("nclua", 1, true)
      and not text:find("could not", 1, true) and not text:find("closing", 1, true) then
      return line.text
    end
  end
end

local function of_size(list, bytes)
  local some = {}
  for _, one in ipairs(list) do
    local is_ours = one.collective == "all_reduce" or one.collective == nil
    if is_ours and one.bytes == bytes then some[#some + 1] = one end
  end
  return some
end

local function times_of(run, experiment)
  local rows = {}
  for _, row in ipairs(run:rows("plugin")) do
    if row.experiment == experiment then rows[#rows + 1] = row end
  end
  local case = critical_path.cases(rows, { "experiment" })[1]
  return case and case:slowest_of("time_us")
end

local function compare_times(run)
  local auto, forced = proof.experiments(run.opt)
  local a, b = times_of(run, auto), times_of(run, forced)
  return a and b and contest.compare(a, b, { confidence = run.opt.confidence })
end

local function kept_variables(opt)
  local set = {}
  for _, name in ipairs({ "NCCL_ALGO", "NCCL_PROTO" }) do
    for _, kept in ipairs(opt.keep_env) do
      if kept == name then set[name] = os.getenv(name) end
    end
  end
  return set
end

local REPORT = { { "witness", "witness" }, { "says", "says" }, { "agrees", "answer" } }

---The verdict for people.
---@param run run
---@param verdict override.verdict
---@param profile? tuning.geometry
---@param why? string there is no profile
---@return string markdown
function proof.describe(run, verdict, profile, why)
  for _, one in ipairs(verdict.witnesses) do
    one.answer = one.agrees == nil and "cannot tell" or one.agrees and "yes" or "NO"
  end
  local where = profile and "kernels seen by " .. profile.source or "no profile: " .. why
  return ("%s at %s: **%s** (%s).\n\n%s"):format(combination.name(run.opt.override),
    size.format(run.opt.override_bytes), verdict.text, where,
    report.table(REPORT, verdict.witnesses))
end

---Reads what the witnesses saw and judges.
---@param run run
---@param grids? integer[]
---@return override.verdict
function proof.judge(run, grids)
  local opt, bytes = run.opt, run.opt.override_bytes
  local result = capture.read(run.folder, "witness")
  local said = run:rows("witness")[1]
  local seen = {
    environment = kept_variables(opt), loaded = loaded_line(result.log),
    calls = of_size(result.observed, bytes),
    selections = of_size(result.log.selections, bytes), grids = grids,
    backend = said and said.algorithm ~= "?" and said or nil,
    against = compare_times(run),
  }
  return override.judge(opt.override, bytes, seen)
end

return proof
