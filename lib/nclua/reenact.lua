--- All_reduce by hand: the result of every element, bit for bit, from the ranks' inputs and
--- the order in which the algorithm adds them.
---
--- Floating-point sums depend on their order, and the order is the algorithm's:
---
---  * Ring: a channel's part of the message is cut into chunks; the i-th belongs to place
---    i mod n of the channel's ring. Its sum begins at the next place, with that rank's
---    input, goes once round, and ends at its own place.
---  * Tree: each rank adds to its own input the sum of its first child, then that of its
---    second.
---
--- Every addition is rounded to the dtype. "avg" multiplies each input by 1/n first.
local reenact = {}

local elements = require("nclua.elements")

---@class reenact.chunk
---@field channel integer
---@field index integer from 0 within the channel
---@field offset integer bytes
---@field bytes integer

---A rank's input; or the first of several, to which the others are added in turn.
---@alias reenact.sum integer|reenact.sum[]

local function are_coprime(a, b)
  while b > 0 do a, b = b, a % b end
  return a == 1
end

-- Channel 0 goes round in steps of 1, channel 1 the other way, the next ones in steps of
-- the next number that meets all ranks.
local function stride_of(n, channel)
  local strides = {}
  for s = 1, math.max(n // 2, 1) do
    if are_coprime(s, n) then
      strides[#strides + 1] = s
      if n > 2 then strides[#strides + 1] = n - s end
    end
  end
  return strides[channel % #strides + 1]
end

---@param n integer ranks
---@param channel integer
---@param place integer
---@return integer rank
function reenact.ring_rank(n, channel, place)
  return place * stride_of(n, channel) % n
end

local function ring_sum(n, chunk)
  local order = {}
  for i = 1, n do order[i] = reenact.ring_rank(n, chunk.channel, chunk.index + i) end
  return order
end

-- NCCL's binary tree (trees.cc, ncclGetBtree): a rank's lowest bit is its height, and its
-- children are half of that away on both sides.
local function tree_sum(n, rank, named)
  local bit = 1
  while bit < n and rank & bit == 0 do bit = bit << 1 end
  local low = bit >> 1
  local sum = { named(rank) }
  if rank > 0 and low > 0 then sum[2] = tree_sum(n, rank - low, named) end
  while low > 0 and rank + low >= n do low = low >> 1 end
  if low > 0 then sum[#sum + 1] = tree_sum(n, rank + low, named) end
  return #sum == 1 and sum[1] or sum
end

-- Odd channels have the tree of a pair's second: mirrored, or with an odd n shifted.
local function tree_name(n, channel)
  return function(rank)
    if channel % 2 == 0 then return rank end
    return n % 2 == 0 and n - 1 - rank or (rank + 1) % n
  end
end

---The order in which a chunk's elements are added.
---@param algorithm "Ring"|"Tree"
---@param n integer ranks
---@param chunk reenact.chunk
---@return reenact.sum
function reenact.order(algorithm, n, chunk)
  if algorithm == "Ring" then return ring_sum(n, chunk) end
  if algorithm == "Tree" then return tree_sum(n, 0, tree_name(n, chunk.channel)) end
  error(("reenact: unknown algorithm '%s': expected Ring or Tree"):format(algorithm), 2)
end

---How a call's message was cut, from the steps that `nclua.cpu` recorded, of one rank or
---of all.
---@param steps cpu.step[] of one all_reduce
---@return reenact.chunk[] by offset
function reenact.chunks(steps)
  local seen, chunks = {}, {}
  for _, step in ipairs(steps) do
    if not seen[step.offset] then
      local chunk = { channel = step.channel, offset = step.offset, bytes = step.bytes }
      seen[step.offset] = true
      chunks[#chunks + 1] = chunk
    end
  end
  table.sort(chunks, function(a, b) return a.offset < b.offset end)
  local counts = {}
  for _, chunk in ipairs(chunks) do
    chunk.index = counts[chunk.channel] or 0
    counts[chunk.channel] = chunk.index + 1
  end
  return chunks
end

local function evaluate(sum, inputs, dtype, op)
  if math.type(sum) == "integer" then return inputs[sum] end
  local result = evaluate(sum[1], inputs, dtype, op)
  for i = 2, #sum do
    result = elements.reduce(dtype, op, result, evaluate(sum[i], inputs, dtype, op))
  end
  return result
end

---@class reenact.options
---@field dtype elements.dtype
---@field op "sum"|"prod"|"max"|"min"|"avg"
---@field algorithm "Ring"|"Tree"
---@field chunks reenact.chunk[] which together are the message

---What every rank's all_reduce must give.
---@param inputs string[] rank r's at r + 1, as `buffer:to_string` gives them
---@param options reenact.options
---@return string result
function reenact.all_reduce(inputs, options)
  local n, dtype, op = #inputs, options.dtype, options.op
  local pieces = {}
  for i, chunk in ipairs(options.chunks) do
    local own = {}
    for rank = 0, n - 1 do
      own[rank] = inputs[rank + 1]:sub(chunk.offset + 1, chunk.offset + chunk.bytes)
      if op == "avg" then own[rank] = elements.scale(dtype, own[rank], 1 / n) end
    end
    local order = reenact.order(options.algorithm, n, chunk)
    pieces[i] = evaluate(order, own, dtype, op == "avg" and "sum" or op)
  end
  return table.concat(pieces)
end

return reenact
