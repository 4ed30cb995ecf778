--- The ways of timing a row: host time in the calls, wall time to observed completion, and,
--- in a pass of its own, device time between events. Each pass begins behind a barrier.
local cuda = require("nclua.cuda")
local measure = require("nclua.measure")

local clocks = {}

---@class perf.pass
---@field operations integer that the times are of
---@field host_us number
---@field wall_us number

---@class perf.clock what the ways below have in common
---@field rank ranks.rank
---@field stream cuda.stream
---@field sequence perf.sequence
---@field opt table iters, agg_iters, blocking, cudagraph
---@field reset fun() makes the data fresh; in place it would grow without bound

-- A rank that had to sleep in the barrier wakes late: in a second one, those that are there
-- first spin for it, and all leave together.
local function meet(c)
  c.rank:barrier(c.stream)
  c.rank:barrier()
end

-- n iterations back to back, then one wait: what nccl-tests reports with -z 0.
local function pipelined(c)
  local operations = c.opt.iters * c.opt.agg_iters
  local host_us, wall_us = c.sequence:time(operations)
  return { operations = operations, host_us = host_us, wall_us = wall_us }
end

-- Each iteration is waited for. The barriers that keep the ranks together are inside the
-- time with -z 1 and outside of it with -z 3; with -z 2 there are none.
local function isolated(c)
  local host_us, outside_us = 0, 0
  local start = cuda.now_ns()
  for _ = 1, c.opt.iters do
    host_us = host_us + measure.host_us(function() c.sequence:enqueue(c.opt.agg_iters) end)
    c.stream:sync()
    if c.opt.blocking ~= 2 then
      local barrier_us = measure.host_us(function() c.rank:barrier() end)
      outside_us = outside_us + (c.opt.blocking == 3 and barrier_us or 0)
    end
  end
  local wall_us = (cuda.now_ns() - start) / 1000 - outside_us
  return { operations = c.opt.iters * c.opt.agg_iters, host_us = host_us,
    wall_us = wall_us }
end

local function captured(c)
  local operations = c.opt.iters * c.opt.agg_iters
  c.sequence:rewind()
  return assert(c.stream:capture(function() c.sequence:enqueue(operations) end)), operations
end

local function captured_if_asked(c)
  if c.opt.cudagraph > 0 then return captured(c) end
end

-- The iterations as one graph, launched -G times. Its first launch, which also uploads it,
-- is not timed.
local function graph(c)
  local one <close>, operations = captured(c)
  one:launch(c.stream)
  c.reset()
  meet(c)
  local start = cuda.now_ns()
  for _ = 1, c.opt.cudagraph do one:launch(c.stream) end
  local host_us = (cuda.now_ns() - start) / 1000
  c.stream:sync()
  return { operations = operations * c.opt.cudagraph, host_us = host_us,
    wall_us = (cuda.now_ns() - start) / 1000 }
end

---One pass by the host's clocks.
---@param c perf.clock
---@return perf.pass
function clocks.pass(c)
  if c.opt.cudagraph > 0 then return graph(c) end
  c.reset()
  c.sequence:rewind()
  meet(c)
  return c.opt.blocking > 0 and isolated(c) or pipelined(c)
end

local MOST_HOLD_US, HOLD_MARGIN_US, EVENT_US = 1000000, 100, 5

-- How long a kernel must wait so that all is queued when it ends; 0: it cannot.
local function hold_us(c, pass)
  if c.opt.hold ~= "auto" then return c.opt.hold end
  local enqueue_us = pass.host_us / pass.operations * c.opt.iters * c.opt.agg_iters
  local wanted = 1.5 * enqueue_us + EVENT_US * c.opt.iters + HOLD_MARGIN_US
  return math.floor(math.min(MOST_HOLD_US, wanted))
end

-- Some machines cannot compile the waiting kernel.
local function try_hold(c, us)
  if us == 0 or c.cannot_hold then return 0 end
  local ok = pcall(c.stream.spin, c.stream, us)
  c.cannot_hold = not ok
  return ok and us or 0
end

local function events(c, count)
  c.events = c.events or {}
  for i = #c.events + 1, count do c.events[i] = assert(cuda.event()) end
  return c.events
end

local function record_iterations(c)
  local marks = events(c, c.opt.iters + 1)
  marks[1]:record(c.stream)
  for i = 1, c.opt.iters do
    c.sequence:enqueue(c.opt.agg_iters)
    marks[i + 1]:record(c.stream)
  end
  return c.opt.iters, c.opt.agg_iters
end

local function record_launches(c, one, operations)
  local marks = events(c, c.opt.cudagraph + 1)
  marks[1]:record(c.stream)
  for i = 1, c.opt.cudagraph do
    one:launch(c.stream)
    marks[i + 1]:record(c.stream)
  end
  return c.opt.cudagraph, operations
end

---The device's time for each iteration (for each launch with -G), for one operation of it.
---Neighbours share an event, as in nccl-tests' -I.
---@param c perf.clock
---@param pass perf.pass of the same row: says how long to hold the stream
---@return number[] samples_us
---@return integer held_us by a waiting kernel while all was queued
function clocks.device(c, pass)
  local one <close>, operations = captured_if_asked(c)
  c.reset()
  c.sequence:rewind()
  meet(c)
  local held = try_hold(c, hold_us(c, pass))
  local count, each
  if one then
    count, each = record_launches(c, one, operations)
  else
    count, each = record_iterations(c)
  end
  c.stream:sync()
  local samples = {}
  for i = 1, count do
    samples[i] = c.events[i]:elapsed_us(c.events[i + 1]) / each
  end
  return samples, held
end

return clocks
