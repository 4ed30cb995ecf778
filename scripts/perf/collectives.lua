--- The collectives as nccl-tests measures them: which sizes its options become, what is
--- called, what every rank must hold afterwards, and which share of the bytes the busiest
--- link carries.
local collectives = {}

---@class perf.collective
---@field name string
---@field program string nccl-tests' name, without _perf
---@field shape "whole"|"spread"|"collect"|"exchange" who holds what: all the same count;
---one part in, all parts out; all parts in, one part out; all parts both ways
---@field reduces? boolean
---@field is_rooted? boolean
---@field has_op? boolean nccl-tests prints an operator although there is none
---@field never_in_place? boolean
---@field calls fun(ranks: integer): integer calls of NCCL's that one operation is made of
---@field group? integer how many of them are one NCCL group
---@field bus fun(n: integer): number bus bandwidth by algorithm bandwidth
---@field parts? fun(n: integer): integer parts that algorithm bandwidth counts
---@field make fun(o: perf.operation, send: cuda.buffer, recv: cuda.buffer) makes the calls

---@class perf.operation what `make` needs beside the buffers
---@field comm nccl.comm
---@field op nccl.operator?
---@field root integer
---@field stream cuda.stream

local function one() return 1 end
local function most_of(n) return (n - 1) / n end

local ALL = {
  { name = "all_reduce", shape = "whole", reduces = true,
    bus = function(n) return 2 * (n - 1) / n end,
    make = function(o, send, recv) o.comm:all_reduce(send, recv, o.op, o.stream) end },
  { name = "all_gather", shape = "spread", bus = most_of,
    make = function(o, send, recv) o.comm:all_gather(send, recv, o.stream) end },
  { name = "reduce_scatter", shape = "collect", reduces = true, bus = most_of,
    make = function(o, send, recv) o.comm:reduce_scatter(send, recv, o.op, o.stream) end },
  { name = "broadcast", shape = "whole", is_rooted = true, bus = one,
    make = function(o, send, recv) o.comm:broadcast(send, recv, o.root, o.stream) end },
  { name = "reduce", shape = "whole", reduces = true, is_rooted = true, bus = one,
    make = function(o, send, recv)
      o.comm:reduce(send, recv, o.op, o.root, o.stream)
    end },
  { name = "all_to_all", program = "alltoall", shape = "exchange", never_in_place = true,
    bus = most_of,
    make = function(o, send, recv) o.comm:all_to_all(send, recv, o.stream) end },
  { name = "gather", shape = "spread", is_rooted = true, bus = most_of,
    make = function(o, send, recv) o.comm:gather(send, recv, o.root, o.stream) end },
  { name = "scatter", shape = "collect", is_rooted = true, bus = most_of,
    make = function(o, send, recv) o.comm:scatter(send, recv, o.root, o.stream) end },
  { name = "sendrecv", shape = "whole", has_op = true, never_in_place = true, bus = one,
    group = 2, calls = function() return 2 end,
    make = function(o, send, recv)
      local rank, count = o.comm.rank, o.comm.count
      o.comm:send(send, (rank + 1) % count, o.stream)
      o.comm:recv(recv, (rank - 1) % count, o.stream)
    end },
  { name = "hypercube", shape = "spread", bus = one, parts = function(n) return n - 1 end,
    group = 2,
    calls = function(ranks)
      local calls = 0
      for _ in collectives.steps(ranks) do calls = calls + 2 end
      return calls
    end,
    make = function(o, _, recv) -- the rank's own part is there already
      local rank, part = o.comm.rank, recv.count // o.comm.count
      for mask in collectives.steps(o.comm.count) do
        local mine = rank & ~(mask - 1)
        local theirs = mine ~ mask
        o.comm:send(recv:slice(mine * part + 1, part * mask), rank ~ mask, o.stream)
        o.comm:recv(recv:slice(theirs * part + 1, part * mask), rank ~ mask, o.stream)
      end
    end },
}

---The masks 1, 2, 4, ... of a hypercube's dimensions.
---@param ranks integer
---@return fun(): integer?
function collectives.steps(ranks)
  local mask = 1
  return function()
    local this = mask
    mask = mask << 1
    return this < ranks and this or nil
  end
end

collectives.NAMES = {}
for i, each in ipairs(ALL) do
  each.program = each.program or each.name
  each.calls = each.calls or one
  collectives.NAMES[i], collectives[each.name] = each.name, each
end

local PART_BYTES = 16 -- a rank's part is a multiple of this, as from nccl-tests 2.13.12

---@class perf.counts elements
---@field send integer
---@field recv integer
---@field count integer what NCCL is told, and what nccl-tests prints
---@field bytes integer the larger side of a rank

---How many elements a requested size becomes.
---@param collective perf.collective
---@param bytes integer
---@param type perf.type
---@param ranks integer
---@return perf.counts
function collectives.counts(collective, bytes, type, ranks)
  local whole = bytes // type.bytes
  local shape = collective.shape
  local part = whole // ranks * type.bytes // PART_BYTES * PART_BYTES // type.bytes
  local counts = { count = part, send = part * ranks, recv = part * ranks }
  if shape == "whole" then
    counts = { send = whole, recv = whole, count = whole }
  elseif shape == "spread" then
    counts.send = part
  elseif shape == "collect" then
    counts.recv = part
  end
  counts.bytes = math.max(counts.send, counts.recv) * type.bytes
  return counts
end

---Bandwidth as nccl-tests defines it, in 1e9 bytes a second.
---@param collective perf.collective
---@param counts perf.counts
---@param type perf.type
---@param ranks integer
---@param microseconds number
---@return number algbw_gbps
---@return number busbw_gbps
function collectives.bandwidth(collective, counts, type, ranks, microseconds)
  local bytes = counts.bytes
  if collective.parts then bytes = counts.count * type.bytes * collective.parts(ranks) end
  local algbw = bytes / 1000 / microseconds
  return algbw, algbw * collective.bus(ranks)
end

---The operator that a row of nccl-tests names.
---@param collective perf.collective
---@param op string
---@return string
function collectives.redop(collective, op)
  return (collective.reduces or collective.has_op) and op or "none"
end

return collectives
