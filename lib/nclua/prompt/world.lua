--- All local devices in one word: a communicator and a stream each, in this process. Calls
--- reach all ranks in one group, so that none waits for another that is yet to be called.
local world = {}

local cuda = require("nclua.cuda")
local measure = require("nclua.measure")
local nccl = require("nclua.nccl")
local size = require("nclua.size")
local stats = require("nclua.stats")

-- How many arguments stand before the stream, and what an omitted one is.
local CALLS = {
  all_reduce = { 3, op = 3 }, reduce = { 4, op = 3, root = 4 },
  broadcast = { 3, root = 3 }, all_gather = { 2 }, reduce_scatter = { 3, op = 3 },
  all_to_all = { 2 }, gather = { 3, root = 3 }, scatter = { 3, root = 3 },
  send = { 2 }, recv = { 2 },
}

---One buffer a rank; `x[1]` is rank 0's.
---@class world.buffers
---@field count integer of elements
---@field dtype cuda.dtype
local buffers = {}
buffers.__index = buffers
buffers.__name = "world.buffers"

function buffers.__tostring(self)
  return ("world.buffers: %d of %d %s, %s each"):format(#self, self.count, self.dtype,
    size.format(#self > 0 and self[1].bytes or 0))
end

---@param value number
---@return world.buffers self
function buffers:fill(value)
  for _, one in ipairs(self) do one:fill(value) end
  return self
end

---The first elements, a row a rank.
---@param count? integer default: 4
---@return number[][]
function buffers:values(count)
  local rows = {}
  for i, one in ipairs(self) do
    rows[i] = one:to_table(1, math.min(count or 4, one.count))
  end
  return rows
end

function buffers:close()
  for _, one in ipairs(self) do one:close() end
end

buffers.__close = buffers.close

---One rank of a world: the calls of its communicator, on its stream. Of buffers of the
---world it takes its own.
---@class world.rank
---@field index integer from 0
---@field comm nccl.comm
---@field stream cuda.stream
local rank = {}
rank.__index = rank
rank.__name = "world.rank"

function rank.__tostring(self)
  return ("world.rank: %d of %d, device %d"):format(self.index, self.comm.count,
    self.comm.device)
end

local function own(self, value)
  return getmetatable(value) == buffers and value[self.index + 1] or value
end

for name, call in pairs(CALLS) do
  rank[name] = function(self, ...)
    local args = { ... }
    for i = 1, call[1] do args[i] = own(self, args[i]) end
    if call.op and args[call.op] == nil then args[call.op] = "sum" end
    if call.root and args[call.root] == nil then args[call.root] = 0 end
    args[call[1] + 1] = self.stream
    self.comm[name](self.comm, table.unpack(args, 1, call[1] + 1))
    return self
  end
end

---@class world.handle
---@field count integer of ranks
---@field ranks world.rank[] the first is rank 0
---@field comms nccl.comm[]
---@field streams cuda.stream[]
local methods = {}
methods.__index = methods
methods.__name = "world"

function methods.__tostring(self)
  local name = cuda.devices()[self.comms[1].device + 1].name
  return ("world: %d ranks, one a device (%s, %s backend)%s"):format(self.count, name,
    cuda.backend(), self.is_closed and ", closed" or "")
end

local function on_device(device, fn, ...)
  local before = cuda.device()
  cuda.set_device(device)
  local made, message = fn(...)
  cuda.set_device(before)
  return assert(made, message)
end

---Communicators and streams of all local devices, or of the first `n`, or of a list.
---@param devices? integer|integer[]
---@return world.handle
function world.open(devices)
  local comms = assert(nccl.init_all(devices or cuda.device_count()))
  local self = setmetatable({ comms = comms, count = #comms, ranks = {}, streams = {} },
    methods)
  for i, comm in ipairs(comms) do
    self.streams[i] = on_device(comm.device, cuda.stream)
    self.ranks[i] = setmetatable({ index = i - 1, comm = comm, stream = self.streams[i] },
      rank)
  end
  return self
end

---@param dtype cuda.dtype
---@param count integer of elements
---@param value? number of all of them
---@return world.buffers
function methods:buffers(dtype, count, value)
  local list = setmetatable({ dtype = dtype, count = count }, buffers)
  for i, comm in ipairs(self.comms) do
    list[i] = on_device(comm.device, cuda.buffer, dtype, count)
    if value then list[i]:fill(value) end
  end
  return list
end

---Calls `fn` for every rank, in one group.
---@param fn fun(rank: world.rank)
---@return world.handle self
function methods:each(fn)
  nccl.group(function()
    for _, one in ipairs(self.ranks) do fn(one) end
  end)
  return self
end

---Waits for all ranks.
---@return world.handle self
function methods:sync()
  for _, stream in ipairs(self.streams) do stream:sync() end
  return self
end

-- w:all_reduce(x, x, "sum") and so on: on all ranks, waited for.
for name in pairs(CALLS) do
  methods[name] = function(self, ...)
    local args = table.pack(...)
    self:each(function(one) one[name](one, table.unpack(args, 1, args.n)) end)
    return self:sync()
  end
end

---@class world.timing
---@field us stats.vector of every sample: the slowest rank's time of a call
---@field calls integer of a sample
---@field median_us number
---@field bytes integer? of the first buffer
---@field busbw_gbps number? of an all_reduce
local timing = {}
timing.__index = timing
timing.__name = "world.timing"

function timing.__tostring(self)
  local text = ("%.1f us median of %d x %d (%.1f to %.1f)"):format(self.median_us,
    #self.us, self.calls, stats.min(self.us), stats.max(self.us))
  if self.bytes then text = text .. ", " .. size.format(self.bytes) end
  if self.busbw_gbps then text = text .. (", %.2f GB/s bus"):format(self.busbw_gbps) end
  return text
end

local function new_pairs(self)
  local pairs_of = {}
  for i, comm in ipairs(self.comms) do
    pairs_of[i] = { on_device(comm.device, cuda.event), on_device(comm.device, cuda.event) }
  end
  return pairs_of
end

-- Several calls between two events: single ones come in bursts where ranks share CPUs.
local function sample(self, fn, calls, events)
  for i, stream in ipairs(self.streams) do events[i][1]:record(stream) end
  for _ = 1, calls do self:each(fn) end
  for i, stream in ipairs(self.streams) do events[i][2]:record(stream) end
  self:sync()
  local longest = 0
  for _, pair in ipairs(events) do
    longest = math.max(longest, pair[1]:elapsed_us(pair[2]))
  end
  return longest / calls
end

local function time(self, fn, o)
  local calls, samples = o.calls or 10, o.samples or 10
  for _ = 1, o.warmups or 3 do self:each(fn) end
  self:sync()
  local events, us = new_pairs(self), stats.vector({})
  for _ = 1, samples do us:push(sample(self, fn, calls, events)) end
  for _, pair in ipairs(events) do
    pair[1]:close()
    pair[2]:close()
  end
  return setmetatable({ us = us, calls = calls, median_us = stats.median(us) }, timing)
end

---Device time of what `fn` enqueues for a rank, or of a call by name, back to back:
---`w:time("all_reduce", x, x, "sum")`, `w:time(function(r) r:all_reduce(x, x) end)`.
---@param fn string|fun(rank: world.rank)
---@param ... any of the call; after a function { calls = 10, samples = 10, warmups = 3 }
---@return world.timing
function methods:time(fn, ...)
  if type(fn) == "function" then return time(self, fn, ... or {}) end
  if not CALLS[fn] then error(("time: no collective '%s'"):format(fn), 2) end
  local args = table.pack(...)
  local one = time(self, function(r) r[fn](r, table.unpack(args, 1, args.n)) end, {})
  if getmetatable(args[1]) == buffers then one.bytes = args[1][1].bytes end
  if fn == "all_reduce" and one.bytes then
    local _, bus = measure.all_reduce_bandwidth(one.bytes, one.median_us, self.count)
    one.busbw_gbps = bus
  end
  return one
end

local sweep = {}
sweep.__index = sweep
sweep.__name = "world.sweep"

function sweep.__tostring(self)
  local lines = { ("%10s  %10s  %s"):format("bytes", "us", self.call) }
  for i, bytes in ipairs(self.bytes) do
    lines[i + 1] = ("%10s  %10.1f"):format(size.format(bytes), self.us[i])
  end
  return table.concat(lines, "\n")
end

-- Room for what the call takes: the gathered side is as long as all ranks' parts.
local function arguments(self, call, dtype, count)
  local all = count * self.count
  local lengths = {
    all_gather = { count, all }, gather = { count, all }, reduce_scatter = { all, count },
    scatter = { all, count }, all_to_all = { all, all },
  }
  local own_lengths = lengths[call] or { count, count }
  if call == "send" or call == "recv" then
    error("sweep: " .. call .. " needs a peer: use time", 3)
  end
  return self:buffers(dtype, own_lengths[1], 1), self:buffers(dtype, own_lengths[2], 0)
end

local function width_of(self, dtype)
  local probe <close> = self:buffers(dtype, 1)
  return probe[1].bytes
end

---Times a collective for sizes that grow by a factor of 4: what `plot` wants.
---@param call string "all_reduce"
---@param options? { from: string|integer?, to: string|integer?, dtype: cuda.dtype? }
---@return { bytes: integer[], us: number[] }
function methods:sweep(call, options)
  if not CALLS[call] then error(("sweep: no collective '%s'"):format(call), 2) end
  local o = options or {}
  local dtype = o.dtype or "f32"
  local from = assert(size.parse(tostring(o.from or "1K")))
  local to = assert(size.parse(tostring(o.to or "4M")))
  local found = setmetatable({ call = call, bytes = {}, us = {} }, sweep)
  for _, bytes in ipairs(measure.sizes(from, to, 4)) do
    local count = bytes // width_of(self, dtype)
    local a, b = arguments(self, call, dtype, count)
    found.bytes[#found.bytes + 1] = bytes
    found.us[#found.us + 1] = self:time(call, a, b).median_us
    a:close()
    b:close()
  end
  return found
end

---Ends what hangs: all communicators, without waiting.
function methods:abort()
  for _, comm in ipairs(self.comms) do comm:abort() end
  self.is_closed = true
end

---Waits for the ranks, then closes communicators and streams.
function methods:close()
  if self.is_closed then return end
  self:sync()
  self.is_closed = true
  for _, comm in ipairs(self.comms) do comm:close() end
  for _, stream in ipairs(self.streams) do stream:close() end
end

methods.__close = methods.close

return world
