--- What ran, and what NCCL expected. A log line a call costs time, so the calls of the
--- table are not logged: a world of its own makes each call once, with NCCL's log open and,
--- unless the user has a tuner plugin, nclua's looking on, which is handed NCCL's costs.
local capture = require("nclua.capture")
local collectives = require("perf.collectives")
local cost_model = require("nclua.cost_model")
local from_log = require("nclua.cost_model.from_log")
local ranks = require("nclua.ranks")
local steering = require("nclua.steering")
local types = require("perf.types")
local worker = require("perf.worker")

local witness = {}

witness.NAME = "witness"

---@class perf.witness
---@field ranks integer
---@field log nclua.nccl_log.result
---@field observed table[]
---@field model? nclua.cost_model.model
local methods = {}
methods.__index = methods

-- Nothing but one call of each case.
local QUIET = { iters = 1, warmups = 0, passes = 1, stable = 0, check = 0, agg_iters = 1,
  cudagraph = 0, blocking = 0, wants_device_time = false }

local function environment(run)
  local env = { NCCL_DEBUG = "INFO", NCCL_DEBUG_SUBSYS = "INIT,ENV,GRAPH,TUNING",
    NCCL_DEBUG_FILE = run:path(("raw/nccl/%s_%%h_%%p.log"):format(witness.NAME)) }
  local ok, tuner = pcall(steering.environment) -- without a cache folder there is none
  if ok and not os.getenv("NCCL_TUNER_PLUGIN") then
    env.NCCL_TUNER_PLUGIN = tuner.NCCL_TUNER_PLUGIN
    env.NCLUA_TUNER_OBSERVE = run:path(("raw/nccl/%s_%%h_%%p.csv"):format(witness.NAME))
  end
  return env
end

-- Each size once, whatever the number of cycles.
local function distinct(cases)
  local list = {}
  for _, case in ipairs(cases) do
    if case.run_cycle == 0 then list[#list + 1] = case end
  end
  return list
end

---Makes the calls. That nothing is learnt is no reason not to measure.
---@param run run
---@param opt table
---@param cases table[]
function witness.measure(run, opt, cases)
  local quiet = setmetatable(QUIET, { __index = opt })
  local env = environment(run)
  run:command(("%d forked ranks, each call once"):format(opt.ranks), env)
  local report, message = ranks.run({ n = opt.ranks, env = env, timeout_s = opt.timeout,
    oversubscribe = opt.oversubscribe, on_line = function() end,
    on_row = function(_, section, row)
      if section == "fact" then run:fact(row[1], row[2]) end
    end,
    fn = function(rank) worker.run(rank, distinct(cases), quiet) end })
  if not report then run:note("what ran is not known: " .. message:match("^[^\n]*")) end
end

local function model_of(log, device)
  local system = from_log.system(log, { device = device })
  return system and cost_model.model(system) or nil
end

---Reads back what the calls have left in a run's directory.
---@param folder string
---@param rank_count integer
---@param device string a device's name
---@return perf.witness
function witness.read(folder, rank_count, device)
  local found = capture.read(folder, witness.NAME)
  return setmetatable({ ranks = rank_count, log = found.log, observed = found.observed,
    model = model_of(found.log, device) }, methods)
end

-- Bytes of a rank's share, and of all shares together: versions log one or the other.
local function sizes(self, one)
  local share = one.count * types.find(one.type).bytes
  local is_whole = collectives[one.collective].shape == "whole"
  return share, is_whole and share or share * self.ranks
end

-- The one entry that all lines about this call agree on; nil if they do not.
local function agreed(list, matches)
  local found
  for _, entry in ipairs(list) do
    if entry.algorithm and matches(entry) then
      local is_same = not found or (found.algorithm == entry.algorithm
        and found.protocol == entry.protocol)
      if not is_same then return nil end
      found = (not found or entry.channels) and entry or found
    end
  end
  return found
end

function methods:logged(one)
  local share, total = sizes(self, one)
  return agreed(self.log.selections, function(entry)
    return entry.collective == one.collective
      and entry.bytes == (entry.is_total and total or share)
  end)
end

function methods:seen_by_tuner(one)
  local share, total = sizes(self, one)
  local is_gather = one.collective == "all_gather" or one.collective == "reduce_scatter"
  return agreed(self.observed, function(entry)
    return entry.collective == one.collective
      and entry.bytes == (is_gather and total or share)
  end)
end

local function say(one, entry, known_from)
  one.algorithm, one.protocol, one.channels, one.known_from =
    entry.algorithm, entry.protocol, entry.channels, known_from
end

-- NCCL's own figure, then what its log says, then the model from the log's graph lines.
local function predict(self, one, logged, seen)
  local cost = seen and capture.costs(seen)[one.algorithm]
  cost = cost and cost[one.protocol]
  if cost and cost >= 0 then return cost, "tuner" end
  if logged and logged.time_us then return logged.time_us, "log" end
  if not self.model then return end
  local share = sizes(self, one)
  local bytes = cost_model.model_bytes(self.model, one.collective, share)
  local ok, time_us = pcall(cost_model.time, self.model, one.collective, one.algorithm,
    one.protocol, bytes)
  if ok and time_us and time_us >= 0 then return time_us, "model" end
end

---Adds what is known to a row of the table.
---@param one perf.result
function methods:explain(one)
  local logged, seen = self:logged(one), self:seen_by_tuner(one)
  if not one.known_from and logged then say(one, logged, "log") end
  if not one.known_from and seen then say(one, seen, "tuner") end
  if not one.algorithm or not one.protocol then return end
  one.predicted_us, one.predicted_from = predict(self, one, logged, seen)
end

return witness
