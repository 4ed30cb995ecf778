--- The forced sweep: AllReduce at many sizes, made in every algorithm, protocol and number
--- of channels, and as the library itself chooses. One communicator, another choice before
--- each sample, in an order drawn anew every cycle: what drifts, drifts for all of them.
local sweep = {}

local combination = require("nclua.combination")
local contest = require("nclua.contest")
local cuda = require("nclua.cuda")
local measure = require("nclua.measure")
local payload = require("nclua.payload")
local section = require("nclua.section")
local shuffle = require("nclua.shuffle")
local steering = require("nclua.steering")

local FP32 = 4 -- bytes
local NOT_A_TIME = 0 / 0

sweep.KEYS = "size_bytes algorithm protocol channels"

local SPEC = {
  title = "Forced sweep",
  columns = sweep.KEYS .. " cycle steering outcome time_us",
  keys = sweep.KEYS,
  case = "bytes={size_bytes};choice={algorithm}/{protocol}/{channels}",
  metric = "time_us",
  summary = sweep.KEYS .. [[ availability samples median_time_us low_us high_us p95_time_us
    min_time_us max_time_us cv_percent median_algbw_GBs median_busbw_GBs auto_time_ratio
    auto_time_ratio_low auto_time_ratio_high than_auto correct]],
}

---The options of every chapter that sweeps.
---@type options.row[]
sweep.OPTIONS = {
  { "ranks", "auto", "ranks; auto: every GPU, or 4 on the CPU backend", kind = "integer",
    min = 2 },
  { "iterations", 20, "calls in a row that make one sample", min = 1 },
  { "smallest", "4", "smallest message", kind = "size", min = FP32 },
  { "algorithms", "all", "to be forced, comma-separated", kind = "list" },
  { "protocols", "all", "to be forced, comma-separated", kind = "list" },
  { "channels", "", "numbers of channels to be forced as well as NCCL's own, "
    .. "comma-separated", kind = "integers" },
  { "seed", 1, "of the random order" },
  { "confidence", 0.95, "of the intervals that make a difference real" },
  { "keep_env", "NCCL_NVLS_ENABLE", "NCCL variables that are kept; all others are removed",
    kind = "list" },
}

---A quarter of a GPU's memory is left for three buffers of 1 GiB; a CPU moves less.
sweep.LARGEST = { cpu = measure.largest("cpu"), cuda = 1 << 30 }

---NCCL's log without a line a call, which would cost more than a small call itself.
sweep.DEBUG = { NCCL_DEBUG = "INFO", NCCL_DEBUG_SUBSYS = "INIT,ENV,GRAPH" }

---@param opt table
---@return integer ranks that the options ask for
function sweep.ranks(opt)
  if opt.ranks ~= "auto" then return opt.ranks end
  return cuda.backend() == "cpu" and 4 or math.max(2, cuda.device_count())
end

---@param opt table
---@return combination[]
function sweep.combinations(opt)
  local list, message = combination.product(opt.algorithms, opt.protocols, opt.channels)
  if not list then error(message, 0) end
  return list
end

local function key(bytes, one)
  return { size_bytes = bytes, algorithm = one.algorithm, protocol = one.protocol,
    channels = one.channels }
end

local function is_alone(opt)
  return opt.only or opt.alone
end

-- What a sample of the world at hand is chosen by; only "live" ones come in pairs.
local function steered_by(rank)
  return is_alone(rank.opt) and "environment" or "live"
end

-- Calls that are checked once: what Lua would add to each is a fiftieth of a small one.
local function burst_of(rank, data)
  return rank.comm:burst(function()
    rank.comm:all_reduce(data.send, data.recv, "sum")
  end)
end

local function sample(rank, bench)
  local calls = rank.opt.iterations
  bench.data:clear(rank.stream)
  rank:barrier()
  local total_us = cuda.time(rank.stream, function()
    bench.burst:enqueue(calls, rank.stream)
  end)
  local time_us = total_us / calls
  rank:emit({ steering = steered_by(rank), outcome = "measured", time_us = time_us })
  rank:check("sum of every element", bench.data:is_sum(rank.stream))
end

-- Which of the combinations there are at this size; the others get a row that says why.
local function available(rank, steer, bench, bytes)
  local list = { combination.AUTO }
  for _, one in ipairs(sweep.combinations(rank.opt)) do
    local outcome = steer:probe(one, function() bench.burst:enqueue(1, rank.stream) end)
    if outcome == "ignored" then return list, false end
    if outcome == "forced" then
      list[#list + 1] = one
    else
      rank:enter(key(bytes, one))
      rank:emit({ steering = "live", outcome = outcome, time_us = NOT_A_TIME })
    end
  end
  return list, true
end

-- Every call of a sample must really have been made in the way that was asked for.
local function forced_sample(rank, steer, bench, one)
  local before = steer.plugin:report().forced
  steer:force(one)
  sample(rank, bench)
  local forced = steer.plugin:report().forced - before
  local is_auto = one.algorithm == "auto"
  rank:check("every call made as it was forced",
    is_auto and forced == 0 or not is_auto and forced >= rank.opt.iterations)
end

local function measure_live(rank, bench, bytes)
  local steer <close> = steering.open(rank)
  local list, is_live = available(rank, steer, bench, bytes)
  rank:fact("steering", is_live and "live" or "none")
  for cycle in rank:cycles() do
    for _, one in ipairs(shuffle.order(list, rank.opt.seed, bytes, cycle)) do
      rank:enter(key(bytes, one))
      forced_sample(rank, steer, bench, one)
    end
  end
end

-- In a world whose environment has made the choice, or left it to the library.
local function measure_one(rank, bench, bytes)
  if not rank.opt.only then rank:fact("steering", "none") end
  rank:enter(key(bytes, rank.opt.only or combination.AUTO))
  bench.burst:enqueue(1, rank.stream)
  for _ in rank:cycles() do sample(rank, bench) end
end

local function sizes(opt)
  return opt.sizes or measure.sizes(opt.smallest, opt.largest, 2)
end

-- AUTO stands for the case until the section enters others.
local function cases(opt)
  local list = {}
  for i, bytes in ipairs(sizes(opt)) do list[i] = key(bytes, combination.AUTO) end
  return list
end

local function measure_case(rank, case)
  local bytes = case.size_bytes
  local data <close> = payload.all_reduce(rank, "f32", bytes // FP32)
  local bench = { data = data, burst = burst_of(rank, data) }
  local how = is_alone(rank.opt) and measure_one or measure_live
  how(rank, bench, bytes)
end

local function against_auto(case, times, opt)
  local auto = case:with(combination.AUTO):slowest_of("time_us")
  return contest.compare(auto, times,
    { is_paired = case.steering == "live", confidence = opt.confidence })
end

local function summarise(case, opt)
  if case.outcome ~= "measured" then
    return { availability = case.outcome, samples = 0, correct = "" }
  end
  local times, time = case:slowest_of("time_us"), case:slowest("time_us")
  local low, high = contest.interval(times, { confidence = opt.confidence })
  local against = against_auto(case, times, opt)
  local algbw, busbw =
    measure.all_reduce_bandwidth(case.size_bytes, time.median, case.world_size)
  return {
    availability = "available", samples = time.samples, median_time_us = time.median,
    low_us = low, high_us = high, p95_time_us = time.p95, min_time_us = time.min,
    max_time_us = time.max, cv_percent = time.cv_percent, median_algbw_GBs = algbw,
    median_busbw_GBs = busbw, auto_time_ratio = against.ratio,
    auto_time_ratio_low = against.low, auto_time_ratio_high = against.high,
    than_auto = against.verdict,
  }, time
end

---The section of a sweep.
---@param name string
---@param spec? table over the section's own fields
---@return section
function sweep.section(name, spec)
  local all = {}
  for field, value in pairs(SPEC) do all[field] = value end
  for field, value in pairs(spec or {}) do all[field] = value end
  local one = section.new(name, all)
  one.cases, one.measure, one.summarise = cases, measure_case, summarise
  return one
end

return sweep
