--- What every measurement needs beside its own calls: host time, bandwidth as nccl-tests
--- counts it, and how much a backend can be asked for.
local measure = {}

local cuda = require("nclua.cuda")

-- A CPU moves in a second what a GPU moves in a few milliseconds.
local LARGEST = { cpu = 16 << 20, cuda = 256 << 20 }

---The largest message worth measuring here: the only thing about a backend that a chapter
---may depend on.
---@param backend "cpu"|"cuda"
---@return integer bytes
function measure.largest(backend)
  return assert(LARGEST[backend], "unknown backend")
end

---Host time of a call, in microseconds; the call's first result follows.
---@generic T
---@param fn fun(): T
---@return number microseconds
---@return T
function measure.host_us(fn)
  local before = cuda.now_ns()
  local result = fn()
  return (cuda.now_ns() - before) / 1000, result
end

---@param first integer
---@param last integer inclusive
---@param factor integer
---@return integer[]
function measure.sizes(first, last, factor)
  local sizes = {}
  while first <= last do
    sizes[#sizes + 1] = first
    first = first * factor
  end
  return sizes
end

---Algorithm and bus bandwidth of an AllReduce: what the caller moved, and what the
---busiest link must have moved (2 (n - 1) / n of it).
---@param bytes integer
---@param microseconds number
---@param ranks integer
---@return number algbw_gbps
---@return number busbw_gbps
function measure.all_reduce_bandwidth(bytes, microseconds, ranks)
  local algbw = bytes / 1000 / microseconds
  return algbw, algbw * 2 * (ranks - 1) / ranks
end

return measure
