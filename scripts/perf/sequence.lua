--- The timed loop: operations that rotate through slots. The calls are checked beforehand
--- and made by a loop in C, so that none of Lua's time is in them.
local cuda = require("nclua.cuda")

local sequence = {}

---@class perf.sequence
---@field burst nccl.burst
---@field calls integer of an operation
---@field stream cuda.stream
---@field prepare? fun(index: integer) before each operation, where calls are not all of it
local methods = {}
methods.__index = methods

local MOST_RECORDED = 4096 -- operations; then the rotation begins anew

-- How many operations are written down: one a slot, and whole groups.
local function recorded(slots, operations, aggregate)
  local count = math.min(slots, operations, MOST_RECORDED)
  return (count + aggregate - 1) // aggregate * aggregate
end

-- Calls of one NCCL group: those of an operation that needs one, times those aggregated.
-- The steps of a hypercube wait for each other: they cannot be one group.
local function group_of(collective, ranks, aggregate)
  local calls = collective.calls(ranks)
  if collective.group and calls > collective.group then return collective.group end
  return (collective.group or aggregate > 1) and calls * aggregate or 0
end

---@class perf.sequence.spec
---@field collective perf.collective
---@field operation perf.operation
---@field slots perf.slot[]
---@field operations integer the most that will be made at once
---@field aggregate integer operations of one group
---@field copies boolean out of place, a hypercube begins with a copy

---@param spec perf.sequence.spec
---@return perf.sequence
function sequence.new(spec)
  local comm, all = spec.operation.comm, spec.slots
  local count = recorded(#all, spec.operations, spec.aggregate)
  local function write_down()
    for i = 0, count - 1 do
      local slot = all[i % #all + 1]
      spec.collective.make(spec.operation, slot.send, slot.recv)
    end
  end
  local one = setmetatable({ calls = spec.collective.calls(comm.count), next = 0,
    stream = spec.operation.stream, slots = all, is_empty = false }, methods)
  if one.calls > 0 then
    one.burst = comm:burst(write_down,
      { group = group_of(spec.collective, comm.count, spec.aggregate) })
  end
  if spec.copies then one.part = { comm.rank, comm.count } end
  return one
end

local function copy_own_part(self)
  local slot = self.slots[self.next % #self.slots + 1]
  local count = slot.send.count
  if count == 0 then return end
  slot.recv:slice(self.part[1] * count + 1, count):copy_from(slot.send, self.stream)
end

---Makes the next operations.
---@param operations integer
function methods:enqueue(operations)
  if not self.part then
    if self.burst then self.burst:enqueue(operations * self.calls, self.stream) end
    return
  end
  for _ = 1, operations do
    copy_own_part(self)
    if self.burst then self.burst:enqueue(self.calls, self.stream) end
    self.next = self.next + 1
  end
end

---Makes operations and waits until they are done.
---@param operations integer
---@return number host_us in the calls
---@return number wall_us until completion was observed
function methods:time(operations)
  if self.burst and not self.part then
    return self.burst:time(operations * self.calls, self.stream)
  end
  local start = cuda.now_ns()
  self:enqueue(operations)
  local enqueued = cuda.now_ns()
  self.stream:sync()
  return (enqueued - start) / 1000, (cuda.now_ns() - start) / 1000
end

---The next operation is on the first slot again.
function methods:rewind()
  self.next = 0
  if self.burst then self.burst:rewind() end
end

function methods:close()
  if self.burst then self.burst:close() end
end

methods.__close = methods.close

return sequence
