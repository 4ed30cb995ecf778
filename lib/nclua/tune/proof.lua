--- The proof that rules gain something: fresh measurements with the rules in force and with
--- the library's own choice in turns, in one communicator whose plugin reads the very file
--- that a job would get. Sizes without a rule are measured, too: nothing may differ there.
local proof = {}

local contest = require("nclua.contest")
local critical_path = require("nclua.critical_path")
local cuda = require("nclua.cuda")
local payload = require("nclua.payload")
local rules = require("nclua.tune.rules")
local section = require("nclua.section")
local shuffle = require("nclua.shuffle")
local steering = require("nclua.steering")

local FP32 = 4 -- bytes
local POLICIES = { "auto", "tuned" }

local SPEC = {
  title = "Proof run",
  columns = "size_bytes policy cycle time_us",
  keys = "size_bytes policy",
  case = "bytes={size_bytes};policy={policy}",
  metric = "time_us",
  summary_file = "proof_summary.csv",
  summary = "size_bytes policy samples median_time_us min_time_us max_time_us correct",
}

local function cases(opt)
  local list = {}
  for i, bytes in ipairs(opt.sizes) do list[i] = { size_bytes = bytes, policy = "auto" } end
  return list
end

local function obey(plugin, policy)
  if policy == "auto" then plugin:keep() else plugin:release() end
end

-- The file's rules must be what steers the tuned calls, and nothing must steer the others.
local function sample(rank, data, burst, plugin, policy)
  local calls, before = rank.opt.iterations, plugin:report().forced
  local has_rule = policy == "tuned" and rules.at(rank.opt.rules, data.send.bytes) ~= nil
  obey(plugin, policy)
  data:clear(rank.stream)
  rank:barrier()
  local total_us = cuda.time(rank.stream, function() burst:enqueue(calls, rank.stream) end)
  rank:emit({ time_us = total_us / calls })
  rank:check("sum of every element", data:is_sum(rank.stream))
  local forced = plugin:report().forced - before
  rank:check("the rules' file steers these calls",
    has_rule and forced >= calls or not has_rule and forced == 0)
end

local function measure(rank, case)
  local steer <close> = steering.open(rank)
  local bytes = case.size_bytes
  local data <close> = payload.all_reduce(rank, "f32", bytes // FP32)
  local burst = rank.comm:burst(function()
    rank.comm:all_reduce(data.send, data.recv, "sum")
  end)
  for _, policy in ipairs(POLICIES) do
    obey(steer.plugin, policy)
    burst:enqueue(1, rank.stream)
  end
  for cycle in rank:cycles() do
    for _, policy in ipairs(shuffle.order(POLICIES, rank.opt.seed, bytes, cycle)) do
      rank:enter({ size_bytes = bytes, policy = policy })
      sample(rank, data, burst, steer.plugin, policy)
    end
  end
end

local function summarise(case)
  local time = case:slowest("time_us")
  return { samples = time.samples, median_time_us = time.median, min_time_us = time.min,
    max_time_us = time.max }, time
end

---@return section
function proof.section()
  local one = section.new("proof", SPEC)
  one.cases, one.measure, one.summarise = cases, measure, summarise
  return one
end

local function whole_floats(bytes)
  return math.floor(bytes / FP32) * FP32
end

---What to measure: every size of the sweep, and one in between where a rule covers both
---neighbours, which the sweep has not seen.
---@param sizes integer[] ascending
---@param list tune.rule[]
---@return integer[]
function proof.sizes(sizes, list)
  local more = {}
  for i, bytes in ipairs(sizes) do
    more[#more + 1] = bytes
    local following = sizes[i + 1]
    local between = following and whole_floats((bytes + following) / 2)
    local rule = rules.at(list, bytes)
    local is_new = between and between > bytes and between < following
    if is_new and rule and rule == rules.at(list, following) then
      more[#more + 1] = between
    end
  end
  return more
end

proof.COLUMNS = { "size_bytes", "rule", "auto_time_us", "tuned_time_us", "time_ratio",
  "time_ratio_low", "time_ratio_high", "tuned_is", "gain_percent", "is_new_size" }

proof.REPORT = {
  { "bytes", "size_bytes" },
  { "rule", "rule" },
  { "auto us", "auto_time_us", "%.2f" },
  { "tuned us", "tuned_time_us", "%.2f" },
  { "auto/tuned", "time_ratio", "%.3f" },
  { "interval", "interval" },
  { "tuned is", "tuned_is" },
}

---The slowest rank's times of every cycle.
---@param rows table[] of the section
---@return table<string, table<integer, number[]>> times by policy and bytes
function proof.times(rows)
  local times = { auto = {}, tuned = {} }
  for _, case in ipairs(critical_path.cases(rows, { "size_bytes", "policy" })) do
    times[case.policy][case.size_bytes] = case:slowest_of("time_us")
  end
  return times
end

local function ascending(by_bytes)
  local sizes = {}
  for bytes in pairs(by_bytes) do sizes[#sizes + 1] = bytes end
  table.sort(sizes)
  return sizes
end

---@param times table<string, table<integer, number[]>>
---@param list tune.rule[]
---@param swept integer[] sizes of the sweep
---@param options contest.options
---@return table[] rows of gain.csv
function proof.judge(times, list, swept, options)
  local rows, is_swept = {}, {}
  for _, bytes in ipairs(swept) do is_swept[bytes] = true end
  for i, bytes in ipairs(ascending(times.auto)) do
    local auto, tuned = times.auto[bytes], times.tuned[bytes]
    local result, rule = contest.compare(auto, tuned, options), rules.at(list, bytes)
    rows[i] = {
      size_bytes = bytes, rule = rule and rule.name or "",
      auto_time_us = critical_path.statistic(auto).median,
      tuned_time_us = critical_path.statistic(tuned).median, time_ratio = result.ratio,
      time_ratio_low = result.low, time_ratio_high = result.high,
      tuned_is = result.verdict, gain_percent = (1 - 1 / result.ratio) * 100,
      is_new_size = not is_swept[bytes],
      interval = ("%.3f to %.3f"):format(result.low, result.high),
    }
  end
  return rows
end

---The rules that the fresh measurements confirm: faster somewhere, slower nowhere.
---@param rows table[] of gain.csv
---@param list tune.rule[]
---@return tune.rule[] kept
---@return string[] dropped why, one a rule
function proof.confirmed(rows, list)
  local kept, dropped = {}, {}
  for _, rule in ipairs(list) do
    local count = { faster = 0, slower = 0, unclear = 0 }
    for _, row in ipairs(rows) do
      if rules.at(list, row.size_bytes) == rule then
        count[row.tuned_is] = count[row.tuned_is] + 1
      end
    end
    if count.faster > 0 and count.slower == 0 then
      kept[#kept + 1] = rule
    else
      dropped[#dropped + 1] = ("%s for %d to %d bytes: faster at %d sizes, slower at %d, "
        .. "unclear at %d"):format(rule.name, rule.min_bytes, rule.max_bytes, count.faster,
        count.slower, count.unclear)
    end
  end
  return kept, dropped
end

return proof
