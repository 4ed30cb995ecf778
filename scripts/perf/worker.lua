--- A rank: measures every case and sends what it saw. A case's rows are followed by "done".
local clocks = require("perf.clocks")
local collectives = require("perf.collectives")
local cuda = require("nclua.cuda")
local data = require("perf.data")
local environment = require("nclua.environment")
local nccl = require("nclua.nccl")
local passes = require("perf.passes")
local sequence = require("perf.sequence")
local slots = require("perf.slots")
local types = require("perf.types")
local values = require("perf.values")

local worker = {}

---@class perf.worker
---@field rank ranks.rank
---@field comm nccl.comm
---@field stream cuda.stream
---@field opt table
---@field memory? perf.memory of the type that is measured
---@field operators table<string, nccl.op>
---@field cannot_hold? boolean
local methods = {}
methods.__index = methods

local CTA_POLICIES = { [0] = "default", "efficiency", "zero" }

-- As nccl-tests does where its NCCL has it, for other settings give other times.
local function communicator(rank, opt)
  local options = { nvlink_centric_sched = assert(nccl.info()).code >= 22800 or nil }
  if opt.cta_policy >= 0 then options.cta_policy = CTA_POLICIES[opt.cta_policy] end
  return rank:comm(options)
end

local function hello(rank)
  if rank.index == 0 then
    for _, fact in ipairs(environment.devices()) do rank:emit("fact", fact) end
  end
  local device = assert(cuda.devices())[cuda.device() + 1]
  local pid = environment.process_id()
  rank:emit("device", { pid = pid, device = device.index, name = device.name,
    bus_id = device.pci_bus_id })
  rank.handle:flush()
end

function methods:memory_of(type)
  if self.memory and self.memory.type ~= type then
    self.memory:close()
    self.memory = nil
  end
  self.memory = self.memory or slots.memory(type, self.comm, self.opt)
  return self.memory
end

-- What the library is given for an operator: its name, or a handle for mulsum.
function methods:operator(type, op)
  if op ~= "mulsum" then return op end
  local scalar = values.scalar(self.rank.index)
  self.operators[type.name] = self.operators[type.name]
    or assert(self.comm:pre_mul_sum(scalar, type.dtype))
  return self.operators[type.name]
end

-- One placement of one case: everything that passes over it need.
local function setting(self, case, is_in_place)
  local collective, type = collectives[case.collective], types.find(case.type)
  local ranks, rank = self.rank.count, self.rank.index
  local counts = collectives.counts(collective, case.requested_bytes, type, ranks)
  local memory = self:memory_of(type)
  local operations = self.opt.iters * self.opt.agg_iters
  local list = {}
  for i = 1, math.min(slots.count(memory, counts), operations, 4096) do
    list[i] = slots.slot(memory, collective, counts, { index = i - 1, rank = rank,
      is_in_place = is_in_place, unalign = self.opt.unalign })
  end
  local operation = { comm = self.comm, root = math.max(0, case.root), stream = self.stream,
    op = collective.reduces and self:operator(type, case.redop) or nil }
  return {
    collective = collective, operation = operation, slots = list, memory = memory,
    is_in_place = is_in_place, counts = counts,
    data = data.new({ collective = collective, counts = counts, type = type,
      op = case.redop, root = operation.root, rank = rank, ranks = ranks,
      stream = self.stream }),
    sequence = sequence.new({ collective = collective, operation = operation, slots = list,
      operations = operations, aggregate = self.opt.agg_iters,
      copies = collective.name == "hypercube" and not is_in_place }),
  }
end

local TIMED_SEED = 0

local function fill(s, slot, seed)
  s.data:fill(slot, seed, s.is_in_place)
end

local function fill_all(s)
  for _, slot in ipairs(s.slots) do fill(s, slot, TIMED_SEED) end
end

local function note(found, wrong, example)
  found.wrong = found.wrong + wrong
  found.example = found.example or example
end

-- What the timed operations have left in the last slot. In place a sum grows with every
-- operation, so there only a fresh one can be checked.
local function check_timed(s, found)
  if s.is_in_place and s.collective.reduces then return end
  local slot = s.slots[#s.slots]
  note(found, s.data:count_wrong(slot, s.memory.expected, TIMED_SEED, s.is_in_place))
end

local function check_rounds(self, s, found)
  for round = 1, self.opt.check do
    local slot = s.slots[(round - 1) % #s.slots + 1]
    fill(s, slot, round)
    self.rank:barrier(self.stream)
    local one <close> = sequence.new({ collective = s.collective, operation = s.operation,
      slots = { slot }, operations = 1, aggregate = 1, copies = s.sequence.part ~= nil })
    one:time(1)
    note(found, s.data:count_wrong(slot, s.memory.expected, round, s.is_in_place))
    if found.wrong > 0 then return end
  end
end

-- What the library says of the last call, if that was of this case: a wish is no answer.
local function choice(comm, key)
  local said = comm:last_choice()
  local bytes = key.count * types.find(key.type).bytes
  if not said or said.collective ~= key.collective or said.bytes ~= bytes then return {} end
  return said
end

local function emit_passes(self, key, list, found, reason)
  local chosen = choice(self.comm, key)
  local is_latency = self.opt.blocking > 0 and self.opt.cudagraph == 0
    and self.opt.agg_iters == 1
  for i, pass in ipairs(list) do
    local us = pass.wall_us / pass.operations
    local row = { cycle = key.run_cycle * self.opt.most_passes + i - 1, pass = i,
      throughput_us = not is_latency and us or nil, latency_us = is_latency and us or nil,
      host_us = pass.host_us / pass.operations, stop = reason,
      wrong = found.wrong, algorithm = chosen.algorithm, protocol = chosen.protocol,
      channels = chosen.channels, known_from = chosen.source }
    self:emit("perf", key, row)
  end
end

local function emit_iterations(self, key, wrong, samples, held_us)
  for i, us in ipairs(samples) do
    self:emit("iterations", key, { iteration = i, iterations = #samples,
      device_us = us, held_us = held_us, wrong = wrong,
      cycle = key.run_cycle * #samples + i - 1 })
  end
end

local function emit_check(self, key, found)
  for _, section in ipairs({ "perf", "iterations" }) do
    self.rank:emit("contracts", { section = section, case = worker.case_name(key),
      cycle = key.run_cycle, rank = self.rank.index, world_size = self.rank.count,
      correct = found.wrong == 0, check = found.example or "no wrong element" })
  end
end

function methods:emit(name, key, row)
  for field, value in pairs(key) do row[field] = value end
  row.rank, row.world_size = self.rank.index, self.rank.count
  self.rank:emit(name, row)
end

-- Fields that say which row of the table it is.
local function key_of(case, s, is_in_place)
  return { collective = case.collective, type = case.type, redop = case.redop,
    root = case.root, requested_bytes = case.requested_bytes, size_bytes = s.counts.bytes,
    count = s.counts.count, place = is_in_place and "in" or "out",
    run_cycle = case.run_cycle }
end

---@param key table
---@return string
function worker.case_name(key)
  return ("%s %s %s root=%d bytes=%d (%d asked for) %s"):format(key.collective, key.type,
    key.redop, key.root, key.size_bytes, key.requested_bytes, key.place)
end

local function clock_of(self, s)
  self.clock = self.clock or { rank = self.rank, stream = self.stream, opt = self.opt }
  self.clock.sequence = s.sequence
  function self.clock.reset() fill_all(s) end
  return self.clock
end

function methods:measure(case, is_in_place)
  local s = setting(self, case, is_in_place)
  local _closing <close> = s.sequence
  local clock = clock_of(self, s)
  fill_all(s)
  if self.opt.warmups > 0 then s.sequence:enqueue(self.opt.warmups * self.opt.agg_iters) end
  self.stream:sync()
  local list, reason = passes.measure(clock, self.comm, self.opt)
  local found = { wrong = 0 }
  if self.opt.check > 0 then
    check_timed(s, found)
    check_rounds(self, s, found)
  else
    found.wrong = nil
  end
  local key = key_of(case, s, is_in_place)
  emit_passes(self, key, list, found, reason)
  if self.opt.wants_device_time then
    emit_iterations(self, key, found.wrong, clocks.device(clock, list[#list]))
  end
  if found.wrong then emit_check(self, key, found) end
end

---Measures all cases, each out of place and in place.
---@param rank ranks.rank
---@param cases table[]
---@param opt table
function worker.run(rank, cases, opt)
  hello(rank)
  local comm <close> = communicator(rank, opt)
  local stream <close> = assert(cuda.stream())
  local self = setmetatable({ rank = rank, comm = comm, stream = stream, opt = opt,
    operators = {} }, methods)
  for i, case in ipairs(cases) do
    self:measure(case, false)
    if not collectives[case.collective].never_in_place then self:measure(case, true) end
    rank:emit("done", { case = i })
    rank.handle:flush()
  end
  if self.memory then self.memory:close() end
end

return worker
