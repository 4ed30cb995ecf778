--- How often a row is timed, and why no more: a fixed number of passes, or until the median
--- is known well enough. All ranks must stop after the same pass.
local clocks = require("perf.clocks")
local cuda = require("nclua.cuda")
local stats = require("nclua.stats")

local passes = {}

local LEAST = 5 -- passes before an interval means anything

---The slowest rank's value, on every rank.
---@param comm nccl.comm
---@param stream cuda.stream
---@param value number
---@return number
local function slowest(comm, stream, value)
  local box <close> = assert(cuda.buffer("f64", 1)):fill(value)
  comm:all_reduce(box, box, "max", stream)
  stream:sync()
  return box:get(1)
end

-- Half of the median's 95 % interval, in percent of the median.
local function uncertainty_percent(times)
  local low, high = stats.bootstrap_median(times, { seed = 1 })
  return 50 * (high - low) / stats.median(times)
end

---Is it enough, and why? Pure.
---@param times number[] of the passes so far, the slowest rank's
---@param elapsed_s number
---@param opt table stable (percent), max_passes, max_seconds
---@return string? reason
function passes.reason(times, elapsed_s, opt)
  if #times < LEAST then return end
  local uncertain = uncertainty_percent(times)
  if uncertain <= opt.stable then return ("stable within %.2g %%"):format(uncertain) end
  if #times >= opt.max_passes then return ("limit of %d passes"):format(#times) end
  if elapsed_s >= opt.max_seconds then return ("limit of %g s"):format(opt.max_seconds) end
end

---@param c perf.clock
---@param comm nccl.comm
---@param opt table passes, and those of `reason`
---@return perf.pass[]
---@return string reason why there are no more
function passes.measure(c, comm, opt)
  local list, times, start_ns = {}, {}, cuda.now_ns()
  if opt.stable == 0 then
    for i = 1, opt.passes do list[i] = clocks.pass(c) end
    return list, ("fixed at %d"):format(opt.passes)
  end
  while true do
    local pass = clocks.pass(c)
    list[#list + 1] = pass
    times[#list] = slowest(comm, c.stream, pass.wall_us / pass.operations)
    local elapsed_s = slowest(comm, c.stream, (cuda.now_ns() - start_ns) / 1e9)
    local reason = passes.reason(times, elapsed_s, opt)
    if reason then return list, reason end
  end
end

return passes
