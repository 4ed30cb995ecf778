--- Steers what NCCL chooses, call by call: NCCL (or the CPU backend) loads nclua's tuner
--- plugin in a rank, and the rank tells the same plugin another choice before each call.
local steering = {}

local combination = require("nclua.combination")
local cuda = require("nclua.cuda")
local plugins = require("nclua.plugins")
local tuner = require("nclua.tuner")

---@class steering
---@field plugin tuner.plugin
---@field rank section.rank
---@field flags cuda.buffer what the ranks tell each other
local methods = {}
methods.__index = methods

---The variables that ranks to be steered need. Raises if the plugin's file cannot be made.
---@return ranks.env
function steering.environment()
  local path, message = plugins.file("tuner")
  if not path then error(message, 0) end
  return { NCCL_TUNER_PLUGIN = path }
end

---In a rank whose environment is that of `steering.environment`.
---@param rank section.rank
---@return steering to be closed
function steering.open(rank)
  local plugin = assert(tuner.open(assert(plugins.file("tuner"))))
  local flags = assert(cuda.buffer("i32", 1))
  return setmetatable({ plugin = plugin, rank = rank, flags = flags }, methods)
end

---From now on calls are made this way; AUTO: as the library itself chooses.
---@param one combination
---@return steering
function methods:force(one)
  if one.algorithm == "auto" then
    self.plugin:keep()
  else
    self.plugin:force({ algorithm = one.algorithm, protocol = one.protocol,
      channels = one.channels })
  end
  return self
end

-- The least over all ranks: they must not disagree about what is measured next.
local function agree(self, value)
  local rank, flags = self.rank, self.flags
  flags:fill(value, rank.stream)
  rank.comm:all_reduce(flags, flags, "min", rank.stream)
  rank.stream:sync()
  return math.tointeger(flags:get(1))
end

---@alias steering.outcome
---| "forced" what was asked for
---| "unavailable" this communicator does not have it
---| "ignored" the library never asked the plugin

local OUTCOMES = { [0] = "ignored", "unavailable", "forced" }

---Makes one call in this way and says what became of it. All ranks get the same answer.
---@param one combination not AUTO
---@param call fun() enqueues one collective
---@return steering.outcome
function methods:probe(one, call)
  self:force(one)
  local before = self.plugin:report()
  call()
  self.rank.stream:sync()
  local after = self.plugin:report()
  self:force(combination.AUTO)
  local code = 0
  if after.forced > before.forced then
    code = 2
  elseif after.calls > before.calls then
    code = 1
  end
  return OUTCOMES[agree(self, code)]
end

---Releases what was forced and lets the plugin go.
function methods:close()
  self.plugin:release()
  self.plugin:close()
  self.flags:close()
end

methods.__close = methods.close

return steering
