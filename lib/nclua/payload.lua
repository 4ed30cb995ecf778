--- Data whose sum over ranks is known for every element, and exact in half precision in
--- every order of addition: rank r sends w * (i mod 7) with w = 1 + r mod 4, so that the
--- sum is W * (i mod 7) with W the sum of the ranks' w. Neighbouring elements differ, so
--- that data in the wrong place is seen.
local payload = {}

local cuda = require("nclua.cuda")

local PERIOD = 7

local function weight(rank)
  return 1 + rank % 4
end

local function ramp(dtype, count, step)
  local buffer = assert(cuda.buffer(dtype, count))
  return buffer:pattern({ start = 0, step = step, modulus = PERIOD * step })
end

---@class payload.all_reduce
---@field send cuda.buffer
---@field recv cuda.buffer
---@field expected cuda.buffer
local all_reduce = {}
all_reduce.__index = all_reduce

---Buffers for AllReduces of `count` elements, out of place.
---@param rank { index: integer, count: integer }
---@param dtype string
---@param count integer
---@return payload.all_reduce to be closed
function payload.all_reduce(rank, dtype, count)
  local total = 0
  for r = 0, rank.count - 1 do total = total + weight(r) end
  return setmetatable({
    send = ramp(dtype, count, weight(rank.index)),
    recv = assert(cuda.buffer(dtype, count)):fill(0),
    expected = ramp(dtype, count, total),
  }, all_reduce)
end

---Forgets the last result: the next check cannot be passed by what is already there.
---@param stream? cuda.stream
function all_reduce:clear(stream)
  self.recv:fill(0, stream)
end

---Is every element of `recv`, or of another buffer, the sum over ranks? Waits.
---@param stream? cuda.stream
---@param buffer? cuda.buffer
---@return boolean
function all_reduce:is_sum(stream, buffer)
  return (buffer or self.recv):compare(self.expected, { stream = stream }) == 0
end

function all_reduce:close()
  for _, buffer in pairs({ self.send, self.recv, self.expected }) do buffer:close() end
end

all_reduce.__close = all_reduce.close

return payload
