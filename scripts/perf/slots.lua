--- Where a rank's data lies. Calls rotate through as many places as the largest size has
--- room for, as nccl-tests does: caches do not help, and what is too early reads old data.
local cuda = require("nclua.cuda")

local slots = {}

---@class perf.memory of one data type
---@field send cuda.buffer
---@field recv cuda.buffer
---@field expected? cuda.buffer
---@field type perf.type
---@field bytes integer
---@field registrations table[] closed with it
local memory = {}
memory.__index = memory

-- NCCL's own allocator where it has one, as nccl-tests does from 2.13.10 on.
local function allocate(type, count)
  local buffer, message = cuda.buffer(type.dtype, count, { kind = "nccl" })
  if not buffer then buffer, message = cuda.buffer(type.dtype, count) end
  if buffer then return buffer end
  error(("a buffer of %d bytes: %s (a smaller -e needs less)"):format(
    count * type.bytes, message), 0)
end

local function register(one, comm, mode)
  if mode == 0 then return end
  for _, buffer in ipairs({ one.send, one.recv }) do
    local made = mode == 2 and assert(comm:window(buffer)) or assert(comm:register(buffer))
    table.insert(one.registrations, made)
  end
end

---@param type perf.type
---@param comm nccl.comm
---@param opt table bytes, check, local_register, unalign
---@return perf.memory
function slots.memory(type, comm, opt)
  local count = math.max(1, opt.largest_bytes // type.bytes)
  local one = setmetatable({ type = type, bytes = count * type.bytes, registrations = {},
    send = allocate(type, count + opt.unalign), recv = allocate(type, count + opt.unalign),
    expected = opt.check > 0 and assert(cuda.buffer(type.dtype, count)) or nil }, memory)
  register(one, comm, opt.local_register)
  return one
end

function memory:close()
  for _, one in ipairs(self.registrations) do one:close() end
  for _, one in ipairs({ self.send, self.recv, self.expected }) do one:close() end
end

memory.__close = memory.close

---@class perf.slot what one operation works on
---@field whole_send cuda.buffer the place of the larger side
---@field whole_recv cuda.buffer
---@field send cuda.buffer what the call is given
---@field recv cuda.buffer

-- In place, everything is in the receive buffer: the smaller side is this rank's part of
-- the larger one.
local function in_place(collective, counts, rank, place)
  local first = rank * counts.count + 1
  if collective.shape == "spread" then return place:slice(first, counts.send), place end
  if collective.shape == "collect" then return place, place:slice(first, counts.recv) end
  return place, place
end

---How many places there are for a size.
---@param one perf.memory
---@param counts perf.counts
---@return integer
function slots.count(one, counts)
  return counts.bytes > 0 and math.max(1, one.bytes // counts.bytes) or 1
end

---@param one perf.memory
---@param collective perf.collective
---@param counts perf.counts
---@param where { index: integer, rank: integer, is_in_place: boolean, unalign: integer }
---@return perf.slot
function slots.slot(one, collective, counts, where)
  local size = counts.bytes // one.type.bytes
  local first = where.index * size + 1 + where.unalign
  local send, recv = one.send:slice(first, size), one.recv:slice(first, size)
  local slot = { whole_send = send, whole_recv = recv }
  if where.is_in_place then
    slot.whole_send = recv
    slot.send, slot.recv = in_place(collective, counts, where.rank, recv)
  else
    slot.send, slot.recv = send:slice(1, counts.send), recv:slice(1, counts.recv)
  end
  return slot
end

return slots
