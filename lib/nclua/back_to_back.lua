--- AllReduces back to back, timed as nccl-tests times them: the host's clock runs from a
--- barrier until all calls are done; a call is its share of that. Offsets rotate through
--- the buffers, out of place and in place; wrong elements are counted afterwards.
local back_to_back = {}

local critical_path = require("nclua.critical_path")
local measure = require("nclua.measure")
local payload = require("nclua.payload")

local FP32 = 4 -- bytes

---@class back_to_back
---@field rank section.rank
---@field iterations integer calls of a sample
---@field data payload.all_reduce
---@field sends cuda.buffer[] through which calls rotate
---@field recvs cuda.buffer[]
local methods = {}
methods.__index = methods

local function pieces(buffer, count)
  local list = {}
  for first = 1, buffer.count, count do list[#list + 1] = buffer:slice(first, count) end
  return list
end

---Buffers for fp32 sums of `bytes`; the calls of a sample rotate through as many of them as
---the largest message has room for.
---@param rank section.rank
---@param bytes integer
---@param iterations integer
---@return back_to_back to be closed
function back_to_back.new(rank, bytes, iterations)
  local count = bytes // FP32
  local places = math.max(1, math.min(iterations, rank.opt.largest // bytes))
  local data = payload.all_reduce(rank, "f32", count * places)
  return setmetatable({
    rank = rank, iterations = iterations, data = data,
    sends = pieces(data.send, count), recvs = pieces(data.recv, count),
    expected = data.expected:slice(1, count),
  }, methods)
end

---@param calls integer
---@param sends? cuda.buffer[]
---@param recvs? cuda.buffer[]
function methods:enqueue(calls, sends, recvs)
  local rank = self.rank
  sends, recvs = sends or self.sends, recvs or self.recvs
  for call = 1, calls do
    local i = (call - 1) % #sends + 1
    rank.comm:all_reduce(sends[i], recvs[i], "sum", rank.stream)
  end
  rank.stream:sync()
end

local function time_a_call(self, sends, recvs)
  self.rank:barrier()
  local total_us = measure.host_us(function()
    self:enqueue(self.iterations, sends, recvs)
  end)
  return total_us / self.iterations
end

-- One call more, on fresh data: repeated sums in place leave nothing to compare with.
local function count_wrong(self, send, recv)
  self:enqueue(1, { send }, { recv })
  return (recv:compare(self.expected, { stream = self.rank.stream }))
end

---One sample of both kinds.
---@return table row time_us, wrong, in_place_time_us, in_place_wrong
function methods:sample()
  local row = { time_us = time_a_call(self, self.sends, self.recvs) }
  self.recvs[1]:fill(0, self.rank.stream)
  row.wrong = count_wrong(self, self.sends[1], self.recvs[1])
  row.in_place_time_us = time_a_call(self, self.recvs, self.recvs)
  self.recvs[1]:copy_from(self.sends[1], self.rank.stream)
  row.in_place_wrong = count_wrong(self, self.recvs[1], self.recvs[1])
  return row
end

function methods:close()
  for _, list in ipairs({ self.sends, self.recvs, { self.expected } }) do
    for _, slice in ipairs(list) do slice:close() end
  end
  self.data:close()
end

methods.__close = methods.close

-- The slowest rank's times, all ranks' wrong elements.
local function merge(rows)
  local merged = {}
  for key, value in pairs(rows[1]) do merged[key] = value end
  for i = 2, #rows do
    local row = rows[i]
    merged.time_us = math.max(merged.time_us, row.time_us)
    merged.in_place_time_us = math.max(merged.in_place_time_us, row.in_place_time_us)
    merged.wrong = merged.wrong + row.wrong
    merged.in_place_wrong = merged.in_place_wrong + row.in_place_wrong
  end
  local bytes, ranks, _ = merged.size_bytes, merged.world_size, nil
  merged.algbw_GBs, merged.busbw_GBs =
    measure.all_reduce_bandwidth(bytes, merged.time_us, ranks)
  _, merged.in_place_busbw_GBs =
    measure.all_reduce_bandwidth(bytes, merged.in_place_time_us, ranks)
  return merged
end

---The ranks' rows of each cycle as the one row that nccl-tests prints.
---@param rows table[]
---@param keys string[] which rows belong together
---@return table[]
function back_to_back.merged(rows, keys)
  local merged = {}
  for i, cycle in ipairs(critical_path.cases(rows, keys)) do
    merged[i] = merge(cycle.rows)
  end
  return merged
end

return back_to_back
