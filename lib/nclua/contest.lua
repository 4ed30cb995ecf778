--- Which of two things is faster, and is that more than chance? Times of the same cycle
--- were measured within moments of each other, so that a slow machine slows both: their
--- ratio is what is looked at, and a bootstrap interval of its median decides. Pure.
local contest = {}

local stats = require("nclua.stats")

--- Fewer cycles than this prove nothing: of four, all agree by chance once in eight.
contest.LEAST_CYCLES = 5

---@class contest.options
---@field confidence? number default 0.95
---@field is_paired? boolean default true: entry i of both is of the same cycle
---@field seed? integer

---@class contest.result
---@field ratio number time of a / time of b: above 1, b is faster
---@field low number of its interval
---@field high number
---@field verdict "faster"|"slower"|"unclear" what b is, compared with a

---The interval of the median.
---@param values number[]
---@param options? contest.options
---@return number low
---@return number high
function contest.interval(values, options)
  options = options or {}
  return stats.bootstrap_median(values,
    { confidence = options.confidence or 0.95, seed = options.seed or 1 })
end

-- Without pairs the interval is as wide as both medians' intervals make it.
local function unpaired(a, b, options)
  local a_low, a_high = contest.interval(a, options)
  local b_low, b_high = contest.interval(b, options)
  return stats.median(a) / stats.median(b), a_low / b_high, a_high / b_low
end

local function paired(a, b, options)
  local ratios = {}
  for i = 1, math.min(#a, #b) do ratios[i] = a[i] / b[i] end
  return stats.median(ratios), contest.interval(ratios, options)
end

---@param a number[] times
---@param b number[]
---@param options? contest.options
---@return contest.result
function contest.compare(a, b, options)
  options = options or {}
  local method = options.is_paired == false and unpaired or paired
  local ratio, low, high = method(a, b, options)
  local verdict = "unclear"
  if math.min(#a, #b) >= contest.LEAST_CYCLES then
    verdict = low > 1 and "faster" or high < 1 and "slower" or verdict
  end
  return { ratio = ratio, low = low, high = high, verdict = verdict }
end

---@class contest.entry
---@field name string
---@field times number[]
---@field median? number set by `rank`

---Sorts by the median, the fastest first, and says which of the others may be as fast.
---@param entries contest.entry[]
---@param options? contest.options
---@return contest.entry[] ranking
---@return contest.entry[] tied with the first, which is not among them
function contest.rank(entries, options)
  local ranking, tied = {}, {}
  for i, entry in ipairs(entries) do
    entry.median = stats.median(entry.times)
    ranking[i] = entry
  end
  table.sort(ranking, function(a, b)
    if a.median ~= b.median then return a.median < b.median end
    return a.name < b.name
  end)
  for i = 2, #ranking do
    local result = contest.compare(ranking[i].times, ranking[1].times, options)
    if result.verdict ~= "faster" then tied[#tied + 1] = ranking[i] end
  end
  return ranking, tied
end

return contest
