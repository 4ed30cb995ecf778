--- What a tuner plugin decides, without a GPU: it is asked for every size as NCCL would
--- ask, and what is kept are the ranges of sizes with one decision, to the byte. Pure but
--- for the asking.
local decisions = {}

local cost_model = require("nclua.cost_model")

---@class decisions.question
---@field collective string
---@field model nclua.cost_model.model that makes the costs which the plugin is handed
---@field from integer the model's bytes
---@field to integer

---@class decisions.range
---@field from integer the model's bytes, first and last
---@field to integer
---@field what string "NCCL's own", "Ring/LL128, 8 channels", "fails: ..."
---@field own string what NCCL would choose at `from`

local function is_same(a, b)
  for algorithm, row in pairs(a) do
    for protocol, cost in pairs(row) do
      local other = b[algorithm] and b[algorithm][protocol] or -1
      if math.abs(cost - other) > 1e-6 * math.abs(cost) then return false end
    end
  end
  return true
end

local function name_of(costs)
  local algorithm, protocol = cost_model.choose(costs)
  return algorithm and algorithm .. "/" .. protocol or "nothing"
end

---The decision for one size.
---@param context tuner.context
---@param question decisions.question
---@param bytes integer
---@return string what
---@return string own
function decisions.at(context, question, bytes)
  local costs = cost_model.costs(question.model, question.collective, bytes)
  local own = name_of(costs)
  local edited, channels = context:ask(question.collective, bytes, costs)
  if not edited then return "fails: " .. channels, own end
  if channels == 0 and is_same(costs, edited) then return "NCCL's own", own end
  local what = name_of(edited)
  return channels > 0 and ("%s, %d channels"):format(what, channels) or what, own
end

-- The last size in [low, high) that is decided as `low` is; `high` is decided otherwise.
local function last_like(ask, low, high, what)
  while high - low > 1 do
    local middle = low + (high - low) // 2
    if ask(middle) == what then low = middle else high = middle end
  end
  return low
end

---The ranges of sizes with one decision, in order. Between two powers of two a decision
---that comes and goes is not seen.
---@param context tuner.context
---@param question decisions.question
---@return decisions.range[]
function decisions.ranges(context, question)
  local function ask(bytes) return decisions.at(context, question, bytes) end
  local what, own = ask(question.from)
  local list = { { from = question.from, to = question.from, what = what, own = own } }
  local bytes = question.from
  while bytes < question.to do
    local last, following = list[#list], math.min(bytes * 2, question.to)
    local next_what = ask(following)
    last.to = following
    if next_what ~= last.what then
      last.to = last_like(ask, bytes, following, last.what)
      local first = last.to + 1
      local first_what, first_own = ask(first)
      list[#list + 1] = { from = first, to = following, what = first_what, own = first_own }
      bytes = first_what == next_what and following or first
    else
      bytes = following
    end
  end
  return list
end

---@class decisions.difference
---@field from integer
---@field to integer
---@field a string
---@field b string

---Where two plugins decide differently.
---@param a decisions.range[]
---@param b decisions.range[] of the same sizes
---@return decisions.difference[]
function decisions.diff(a, b)
  local list, i, j = {}, 1, 1
  while a[i] and b[j] do
    local from = math.max(a[i].from, b[j].from)
    local to = math.min(a[i].to, b[j].to)
    if a[i].what ~= b[j].what then
      list[#list + 1] = { from = from, to = to, a = a[i].what, b = b[j].what }
    end
    if a[i].to == to then i = i + 1 end
    if b[j] and b[j].to == to then j = j + 1 end
  end
  return list
end

return decisions
