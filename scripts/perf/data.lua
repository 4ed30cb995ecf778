--- Fills a slot with what a rank sends, and says what it must hold afterwards.
local values = require("perf.values")

local data = {}

-- A period of values, beginning at `phase`, over a whole buffer: a table for the first one,
-- then ever longer copies on the device.
local function tile(buffer, period, phase, stream)
  local count, first = buffer.count, {}
  if count == 0 then return end
  for i = 1, math.min(#period, count) do
    first[i] = period[(phase + i - 1) % #period + 1]
  end
  local done = #first
  buffer:slice(1, done):copy_from(first, stream)
  while done < count do
    local more = math.min(done, count - done)
    buffer:slice(done + 1, more):copy_from(buffer:slice(1, more), stream)
    done = done + more
  end
end

---@class perf.data of one case in a rank
---@field collective perf.collective
---@field counts perf.counts
---@field type perf.type
---@field op string
---@field root integer
---@field rank integer
---@field ranks integer
---@field from? integer whom sendrecv's data comes from, if not the rank before
---@field stream cuda.stream
local methods = {}
methods.__index = methods

---@param fields table those of perf.data
---@return perf.data
function data.new(fields)
  return setmetatable(fields, methods)
end

function methods:input(rank, seed)
  local op = self.collective.reduces and self.op or "none"
  return values.input(self.type, op, self.ranks, rank, seed)
end

-- What lies in a receive buffer that nobody writes to.
function methods:untouched()
  return { self.type.exact }
end

---Prepares one operation: what is sent is there, what is received is not.
---@param slot perf.slot
---@param seed integer
---@param is_in_place boolean
function methods:fill(slot, seed, is_in_place)
  local mine, stream = self:input(self.rank, seed), self.stream
  tile(slot.whole_recv, self:untouched(), 0, stream)
  tile(slot.send, mine, 0, stream)
  if self.collective.name == "hypercube" and not is_in_place then
    local part = slot.recv:slice(self.rank * self.counts.count + 1, self.counts.count)
    tile(part, mine, 0, stream)
  end
end

-- { values, phase } of one part each; all parts are of the same length.
local EXPECTED = {}

local function everyone(self, seed, phase)
  local parts = {}
  for rank = 0, self.ranks - 1 do parts[rank + 1] = { self:input(rank, seed), phase } end
  return parts
end

function EXPECTED.all_reduce(self, seed)
  return { { values.reduced(self.type, self.op, self.ranks, seed), 0 } }
end

-- Only the root is given something; the others keep what they have.
function EXPECTED.reduce(self, seed, is_in_place)
  if self.rank == self.root then return EXPECTED.all_reduce(self, seed) end
  if is_in_place then return { { self:input(self.rank, seed), 0 } } end
  return { { self:untouched(), 0 } }
end

function EXPECTED.reduce_scatter(self, seed)
  local period = values.reduced(self.type, self.op, self.ranks, seed)
  return { { period, self.rank * self.counts.count } }
end

function EXPECTED.broadcast(self, seed)
  return { { self:input(self.root, seed), 0 } }
end

function EXPECTED.scatter(self, seed)
  return { { self:input(self.root, seed), self.rank * self.counts.count } }
end

function EXPECTED.all_gather(self, seed)
  return everyone(self, seed, 0)
end
EXPECTED.hypercube = EXPECTED.all_gather

function EXPECTED.gather(self, seed, is_in_place)
  if self.rank == self.root then return everyone(self, seed, 0) end
  local parts = {}
  for rank = 0, self.ranks - 1 do
    local is_mine = is_in_place and rank == self.rank
    parts[rank + 1] = { is_mine and self:input(rank, seed) or self:untouched(), 0 }
  end
  return parts
end

function EXPECTED.all_to_all(self, seed)
  return everyone(self, seed, self.rank * self.counts.count)
end

function EXPECTED.sendrecv(self, seed)
  return { { self:input(self.from or (self.rank - 1) % self.ranks, seed), 0 } }
end

---Counts the elements of a slot that are not what they must be.
---@param slot perf.slot
---@param expected cuda.buffer room for it
---@param seed integer
---@param is_in_place boolean
---@return integer wrong
---@return string? example of the first one
function methods:count_wrong(slot, expected, seed, is_in_place)
  local recv, stream = slot.recv, self.stream
  if recv.count == 0 then return 0 end
  local parts = EXPECTED[self.collective.name](self, seed, is_in_place)
  local wanted, length = expected:slice(1, recv.count), recv.count // #parts
  for i, part in ipairs(parts) do
    tile(wanted:slice((i - 1) * length + 1, length), part[1], part[2], stream)
  end
  local op = self.collective.reduces and self.op or "none"
  local wrong, first = recv:compare(wanted, { stream = stream,
    tolerance = values.tolerance(self.type, op, self.ranks) })
  if wrong == 0 then return 0 end
  return wrong, ("element %d is %s, not %s"):format(first, recv:get(first),
    wanted:get(first))
end

return data
