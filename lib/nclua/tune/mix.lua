--- A message mix: which sizes a job sends, and how often. "8K:160,1M:4" is 160 messages of
--- 8 KiB and 4 of 1 MiB. Pure.
local mix = {}

local contest = require("nclua.contest")
local size = require("nclua.size")

local FP32 = 4 -- bytes

---@class tune.mix.entry
---@field bytes integer
---@field count integer

---@param text string
---@return tune.mix.entry[]? entries
---@return string? message
---@return string? code "EINVAL"
function mix.parse(text)
  local entries = {}
  for word in text:gmatch("[^,%s]+") do
    local bytes, count = word:match("^([^:]+):(%d+)$")
    local value = size.parse(bytes or word)
    if not value or value < FP32 or value % FP32 ~= 0 then
      return nil, ("'%s' is no entry of a mix: expected SIZE:COUNT, whole floats"):format(
        word), "EINVAL"
    end
    entries[#entries + 1] = { bytes = value, count = math.tointeger(count) or 1 }
  end
  return entries
end

-- The mix's time in every cycle.
local function totals(entries, times)
  local sums = {}
  for _, entry in ipairs(entries) do
    for cycle, time in ipairs(times[entry.bytes]) do
      sums[cycle] = (sums[cycle] or 0) + entry.count * time
    end
  end
  return sums
end

---What all messages of a mix take, with the library's own choices and tuned.
---@param entries tune.mix.entry[]
---@param auto table<integer, number[]> times by bytes, of every cycle
---@param tuned table<integer, number[]>
---@param options contest.options
---@return contest.result result
---@return number[] auto_us of every cycle
---@return number[] tuned_us
function mix.compare(entries, auto, tuned, options)
  local a, b = totals(entries, auto), totals(entries, tuned)
  return contest.compare(a, b, options), a, b
end

return mix
