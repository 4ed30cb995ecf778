--- What the ranks send, and what must come of it. Inputs are small integers that differ
--- by rank and by place, chosen so that the result, and every partial result in whatever
--- order and grouping, is exact: then a single wrong bit is an error. Pure arithmetic.
---
--- Values repeat after PERIOD elements. A prime: no chunk, slot or rank's part of a power
--- of two begins where another one does, so data in the wrong place is seen.
local values = {}

values.PERIOD = 251

-- A small mixing function: neighbours and ranks look unrelated.
local function hash(rank, i, seed)
  local x = (rank * 0x9E3779B1 + i * 0x85EBCA77 + seed * 0xC2B2AE3D + 0x27D4EB2F)
  x = (x ~ (x >> 15)) * 0x2C1B3C6D & 0xffffffff
  x = (x ~ (x >> 12)) * 0x297A2D39 & 0xffffffff
  return x ~ (x >> 15)
end

-- An integer of magnitude up to `most`; never negative for an unsigned type.
local function small(type, most, rank, i, seed)
  local h = hash(rank, i, seed)
  if not type.is_signed then return h % (most + 1) end
  return h % (2 * most + 1) - most
end

-- Sums: the magnitudes of all ranks together stay exact. Where there are more ranks than
-- that, some send zero, others at each element.
local function summand(type, ranks, weight)
  local most = type.exact // (ranks * weight)
  return function(rank, i, seed)
    if most > 0 then return small(type, most, rank, i, seed) end
    local is_sender = (rank + i + seed) % ranks < type.exact // weight
    return is_sender and small(type, 1, rank, i, seed) or 0
  end
end

-- Products: at each element one rank has a number, some have 2, the others 1; signs vary.
local function factor(type, ranks)
  local number = math.min(5, type.exact // 2)
  local twos, left = 0, type.exact // number
  while left >= 2 and twos < ranks - 1 do twos, left = twos + 1, left // 2 end
  return function(rank, i, seed)
    local place = (rank - i - seed) % ranks
    local h = hash(rank, i, seed)
    local magnitude = place == 0 and 1 + h % number or place <= twos and 2 or 1
    return type.is_signed and h & 64 > 0 and -magnitude or magnitude
  end
end

-- Averages: two ranks at each element, the others send zero. Then what rounds is 1/n, two
-- products with it, and one addition.
local function averaged(type, ranks)
  local most = math.max(1, type.exact // 2)
  return function(rank, i, seed)
    if (rank - i - seed) % ranks > 1 then return 0 end
    return hash(rank, i, seed) % (most + 1)
  end
end

local function any(type)
  return function(rank, i, seed) return small(type, type.exact, rank, i, seed) end
end

---What `mulsum` multiplies a rank's elements with.
---@param rank integer
---@return integer
function values.scalar(rank)
  return 1 + rank % 2
end

local INPUT = {
  sum = function(type, ranks) return summand(type, ranks, 1) end,
  mulsum = function(type, ranks) return summand(type, ranks, 2) end,
  prod = factor, avg = averaged, min = any, max = any, none = any,
}

local REDUCE = {
  sum = function(a, b) return a + b end,
  prod = function(a, b) return a * b end,
  min = math.min,
  max = math.max,
}
REDUCE.mulsum, REDUCE.avg = REDUCE.sum, REDUCE.sum

---One period of what a rank sends.
---@param type perf.type
---@param op string "none" for what only copies
---@param ranks integer
---@param rank integer
---@param seed integer
---@return integer[]
function values.input(type, op, ranks, rank, seed)
  local value, list = INPUT[op](type, ranks), {}
  for i = 1, values.PERIOD do list[i] = value(rank, i, seed) end
  return list
end

---One period of what is reduced from all ranks' input.
---@param type perf.type
---@param op string
---@param ranks integer
---@param seed integer
---@return number[]
function values.reduced(type, op, ranks, seed)
  local result
  for rank = 0, ranks - 1 do
    local list = values.input(type, op, ranks, rank, seed)
    local scalar = op == "mulsum" and values.scalar(rank) or 1
    for i, value in ipairs(list) do
      list[i] = result and REDUCE[op](result[i], value * scalar) or value * scalar
    end
    result = list
  end
  if op ~= "avg" then return result end
  for i, sum in ipairs(result) do
    result[i] = type.roundoff and sum / ranks or sum // ranks
  end
  return result
end

---The relative error that a right result may have. Zero but for averages over a number of
---ranks that is not a power of two: there 1/n, each of two products, their sum, and the
---expected value itself are rounded once, so with u for one rounding that is at most
---(1 + u)^4 - 1, and a little for terms of higher order.
---@param type perf.type
---@param op string
---@param ranks integer
---@return number
function values.tolerance(type, op, ranks)
  if op ~= "avg" or not type.roundoff or ranks & (ranks - 1) == 0 then return 0 end
  return 4 * type.roundoff / (1 - 4 * type.roundoff)
end

return values
