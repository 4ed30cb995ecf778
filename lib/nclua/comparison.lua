--- Two runs side by side: what differs between them, and which times do.
---
--- The level belongs to all rows together (Bonferroni: each row is tested at level / rows).
--- A row has a verdict only if four things agree: Mann-Whitney's p, an interval of the
--- ratio that lies wholly beyond the margin, a difference larger than what either side
--- drifted from its first half to its second, and correct results with valid times.
---
--- Two starts of one program differ by more than its cycles do (where memory and threads
--- come to lie, who else is there), and one run a side cannot tell that from a difference.
--- Then the margin must be as large as what starts were seen to differ; and beside other
--- work a CPU's times may differ by any factor, so that there no verdict is given unless
--- the caller names a margin. With several runs a side the sample is the run's median, and
--- the margin can be what matters.
local comparison = {}

local stats = require("nclua.stats")

local FEWEST = 2 -- samples a side: with fewer there is nothing to test
local SEED = 1 -- the same runs give the same intervals

---@class comparison.options
---@field level? number of a wrong verdict anywhere, default 0.05
---@field margin? number the smallest ratio - 1 that counts; see `default_margin`

---@class comparison.row
---@field section string
---@field world_size integer
---@field case string
---@field metric string
---@field samples_a integer
---@field samples_b integer
---@field median_a number
---@field median_b number
---@field ratio number b / a: above 1 is slower
---@field low? number of the ratio, at 1 - level / rows
---@field high? number
---@field p? number two-sided, Mann-Whitney, not yet corrected
---@field verdict "faster"|"slower"|"no evidence"|"wrong results"|"times invalid"

---@class comparison.result
---@field rows comparison.row[]
---@field tested integer rows that had a test: what the level is divided by
---@field level number
---@field margin number
---@field is_pooled boolean several runs a side
---@field busy? string why no row may have a verdict
---@field only_a string[] what only one of the runs measured
---@field only_b string[]

-- Starts of one AllReduce: 14 and 20 us on two H200 for small messages, minutes apart; to
-- 2.1 times on the CPU backend, two cores with much other work.
local BETWEEN_STARTS = { cuda = 0.5, cpu = 1.5 }
local OF_MANY_STARTS = 0.05

local MOST_OF_OTHERS = 10 -- percent

local NOT_A_DIFFERENCE = { root = true, run_id = true, resume = true }

local function values_of(run)
  local values, order = {}, {}
  local function add(kind, name, value)
    local key = kind .. "\0" .. name
    if values[key] == nil then order[#order + 1] = { kind, name, key } end
    values[key] = tostring(value)
  end
  for _, name in ipairs({ "chapter", "nclua_version", "backend", "hostname" }) do
    add("run", name, run.run[name])
  end
  for _, pair in ipairs(run.facts) do
    local kind = pair[1]:find("^env%.") and "variable" or "machine"
    local is_known = pair[1] == "hostname" or pair[1] == "backend" -- as the run's own
      or pair[1] == "cpu_of_others_percent"
    if not is_known then add(kind, pair[1]:gsub("^env%.", ""), pair[2]) end
  end
  for _, pair in ipairs(run.options) do
    if not NOT_A_DIFFERENCE[pair[1]] then add("option", pair[1], pair[2]) end
  end
  return values, order
end

---What is not the same in all runs: versions, hardware, variables, options.
---@param runs past_run[]
---@return { kind: string, name: string, values: table<integer, string> }[] nil: not there
function comparison.settings(runs)
  local keys, known, values = {}, {}, {}
  for i, run in ipairs(runs) do
    local order
    values[i], order = values_of(run)
    for _, one in ipairs(order) do
      if not known[one[3]] then keys[#keys + 1] = one end
      known[one[3]] = true
    end
  end
  local rows = {}
  for _, key in ipairs(keys) do
    local row, is_different = { kind = key[1], name = key[2], values = {} }, false
    for i in ipairs(runs) do
      row.values[i] = values[i][key[3]]
      is_different = is_different or row.values[i] ~= values[1][key[3]]
    end
    if is_different then rows[#rows + 1] = row end
  end
  return rows
end

local function name_of(case)
  return table.concat({ case.section, case.world_size, case.case, case.metric }, " ")
end

local function half(samples, first, last)
  return stats.median(table.move(samples, first, last, 1, {}))
end

-- How much a run changed while it lasted, as the logarithm of a ratio.
local function drift(samples)
  local middle = #samples // 2
  local early = half(samples, 1, middle)
  local late = half(samples, #samples - middle + 1, #samples)
  if early <= 0 or late <= 0 then return math.huge end
  return math.abs(math.log(late / early))
end

-- Half of what may be wrong goes to each median, so the quotient of the ends is an interval
-- of the ratio at no less than 1 - level.
local function ratio_interval(a, b, level)
  local options = {
    confidence = 1 - level / 2, seed = SEED,
    resamples = math.min(20000, math.max(2000, math.ceil(40 / level))),
  }
  local low_a, high_a = stats.bootstrap_median(a, options)
  local low_b, high_b = stats.bootstrap_median(b, options)
  return low_b / high_a, low_a > 0 and high_b / low_a or math.huge
end

local function is_testable(a, b)
  return a.all_correct and b.all_correct and a.times_valid and b.times_valid
    and #a.samples >= FEWEST and #b.samples >= FEWEST
    and stats.min(a.samples) > 0 and stats.min(b.samples) > 0
end

local function verdict(row, a, b, level, margin)
  if row.p > level then return "no evidence" end
  local wander = math.max(drift(a.samples), drift(b.samples))
  if math.abs(math.log(row.ratio)) <= wander then return "no evidence" end
  if row.low > 1 + margin then return "slower" end
  if row.high < 1 / (1 + margin) then return "faster" end
  return "no evidence"
end

local function untested(a, b)
  if not (a.all_correct and b.all_correct) then return "wrong results" end
  if not (a.times_valid and b.times_valid) then return "times invalid" end
  return "no evidence"
end

local function row_of(a, b)
  local row = {
    section = a.section, world_size = a.world_size, case = a.case, metric = a.metric,
    samples_a = #a.samples, samples_b = #b.samples,
    median_a = stats.median(a.samples), median_b = stats.median(b.samples),
  }
  row.ratio = row.median_b / row.median_a
  row.verdict = untested(a, b)
  return row
end

-- The cases of both runs in a's order, and the names of what only one of them has.
local function matched(a, b)
  local of_b, both, only_a, only_b = {}, {}, {}, {}
  for _, case in ipairs(b.cases) do of_b[name_of(case)] = case end
  for _, case in ipairs(a.cases) do
    local name = name_of(case)
    if of_b[name] then
      both[#both + 1] = { case, of_b[name] }
    else
      only_a[#only_a + 1] = name
    end
    of_b[name] = nil
  end
  for _, case in ipairs(b.cases) do
    if of_b[name_of(case)] then only_b[#only_b + 1] = name_of(case) end
  end
  return both, only_a, only_b
end

---Repeated runs as one side of a comparison: each run is one sample, its median.
---@param runs past_run[]
---@return past_run
function comparison.pool(runs)
  if #runs == 1 then return runs[1] end
  local one, known = { run = runs[1].run, facts = runs[1].facts, cases = {},
    count = #runs }, {}
  for _, run in ipairs(runs) do
    for _, case in ipairs(run.cases) do
      local name = name_of(case)
      local pooled = known[name]
      if not pooled then
        pooled = { section = case.section, world_size = case.world_size, case = case.case,
          metric = case.metric, samples = {}, all_correct = true, times_valid = true }
        known[name], one.cases[#one.cases + 1] = pooled, pooled
      end
      pooled.samples[#pooled.samples + 1] = stats.median(case.samples)
      pooled.all_correct = pooled.all_correct and case.all_correct
      pooled.times_valid = pooled.times_valid and case.times_valid
    end
  end
  return one
end

local function default_margin(a, b)
  if a.count and b.count then return OF_MANY_STARTS end
  return math.max(BETWEEN_STARTS[a.run.backend] or 1, BETWEEN_STARTS[b.run.backend] or 1)
end

local function others(run)
  for _, pair in ipairs(run.facts) do
    if pair[1] == "cpu_of_others_percent" then return tonumber(pair[2]) end
  end
end

-- Did a CPU's run have it for itself?
local function busy(runs)
  for _, run in ipairs(runs) do
    if run.run.backend == "cpu" then
      local percent = others(run)
      if not percent then
        return "It is not known how much of the CPUs others used: no verdicts."
      elseif percent > MOST_OF_OTHERS then
        return ("Others used %d%% of the CPUs: no verdicts."):format(percent)
      end
    end
  end
end

---Compares the times of b with those of a.
---@param a past_run
---@param b past_run
---@param options? comparison.options
---@return comparison.result
function comparison.times(a, b, options)
  local level = options and options.level or 0.05
  local margin = options and options.margin or default_margin(a, b)
  local is_pooled = a.count ~= nil and b.count ~= nil
  local is_free = is_pooled or options and options.margin
  local reason = not is_free and busy({ a, b }) or nil
  local both, only_a, only_b = matched(a, b)
  local tested = 0
  for _, pair in ipairs(both) do
    if is_testable(pair[1], pair[2]) then tested = tested + 1 end
  end
  local rows = {}
  for i, pair in ipairs(both) do
    local one, other = pair[1], pair[2]
    local row = row_of(one, other)
    if is_testable(one, other) then
      local own = level / tested
      row.p = stats.mann_whitney(one.samples, other.samples).p
      row.low, row.high = ratio_interval(one.samples, other.samples, own)
      row.verdict = reason and "no evidence" or verdict(row, one, other, own, margin)
    end
    rows[i] = row
  end
  return { rows = rows, tested = tested, level = level, margin = margin,
    is_pooled = is_pooled, busy = reason, only_a = only_a, only_b = only_b }
end

---The fewest samples a side with which a verdict is possible at all: below, even two runs
---that have no value in common leave p above level / tested.
---@param result comparison.result
---@return integer
function comparison.samples_needed(result)
  local limit = result.level / math.max(1, result.tested)
  local n, p = 1, 1.0 -- p = 2 / binomial(2n, n)
  while p > limit do
    n = n + 1
    p = p * n / (2 * (2 * n - 1))
  end
  return n
end

return comparison
