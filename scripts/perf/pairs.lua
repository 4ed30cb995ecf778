--- Every pair of ranks: half a round trip of the smallest size, and the bandwidth of the
--- largest one, one way and both ways at once, while the other ranks wait.
local cuda = require("nclua.cuda")
local data = require("perf.data")
local collectives = require("perf.collectives")
local report = require("nclua.report")
local section = require("nclua.section")
local slots = require("perf.slots")
local stats = require("nclua.stats")

local pairs_section = section.new("pairs", {
  title = "Pairs of ranks",
  columns = "source target kind size_bytes cycle pair_us",
  keys = "source target kind size_bytes",
  case = "{source} to {target} {kind} bytes={size_bytes}",
  metric = "pair_us",
  summary = "source target kind size_bytes median_us gbps slow correct",
})

function pairs_section.cases() return {} end

local PASSES = 3
local KINDS = { "latency", "one_way", "both_ways" }

-- What a rank enqueues for one operation. No group in a round trip: it has an order.
local CALLS = {}

function CALLS.latency(comm, peer, is_source, send, recv)
  if is_source then
    comm:send(send, peer):recv(recv, peer)
  else
    comm:recv(recv, peer):send(send, peer)
  end
end

function CALLS.one_way(comm, peer, is_source, send, recv)
  if is_source then comm:send(send, peer) else comm:recv(recv, peer) end
end

function CALLS.both_ways(comm, peer, _, send, recv)
  comm:send(send, peer):recv(recv, peer)
end

local GROUPED = { both_ways = { group = 2 } }

local function emit(self, kind, source, target, fields)
  for key, value in pairs({ source = source, target = target, kind = kind,
    size_bytes = self.bytes, rank = self.rank.index, world_size = self.rank.count }) do
    fields[key] = value
  end
  self.rank:emit("pairs", fields)
end

local function check(self, kind, source, target, wrong)
  self.rank:emit("contracts", { section = "pairs", cycle = 0, check = "no wrong element",
    case = pairs_section:case_name({ source = source, target = target, kind = kind,
      size_bytes = self.bytes }),
    rank = self.rank.index, world_size = self.rank.count, correct = wrong == 0 })
end

local function data_of(self, peer)
  local counts = { send = self.count, recv = self.count, count = self.count,
    bytes = self.bytes }
  return data.new({ collective = collectives.sendrecv, counts = counts,
    type = self.memory.type, op = "none", root = 0, rank = self.rank.index,
    ranks = self.rank.count, stream = self.stream, from = peer }), counts
end

local function time(self, kind, source, target)
  local me = self.rank.index
  local peer, is_source = me == source and target or source, me == source
  local d, counts = data_of(self, peer)
  local slot = slots.slot(self.memory, collectives.sendrecv, counts,
    { index = 0, rank = me, is_in_place = false, unalign = 0 })
  d:fill(slot, 0, false)
  local burst <close> = self.comm:burst(function()
    CALLS[kind](self.comm, peer, is_source, slot.send, slot.recv)
  end, GROUPED[kind])
  burst:time(burst.count, self.stream)
  for cycle = 0, PASSES - 1 do
    self.rank.handle:barrier()
    local _, us = burst:time(burst.count * self.opt.iters, self.stream)
    emit(self, kind, source, target, { cycle = cycle,
      pair_us = us / self.opt.iters / (kind == "latency" and 2 or 1) })
  end
  local receives = not is_source or kind ~= "one_way"
  check(self, kind, source, target,
    receives and d:count_wrong(slot, self.memory.expected, 0, false) or 0)
end

-- Ranks that have no part in a pair come to its barriers.
local function visit(self, kind, source, target)
  local me = self.rank.index
  if me == source or me == target then return time(self, kind, source, target) end
  for _ = 1, PASSES do self.rank.handle:barrier() end
end

---In each rank.
---@param rank ranks.rank
---@param opt table
function pairs_section.run_rank(rank, opt)
  local comm <close> = rank:comm()
  local stream <close> = assert(cuda.stream())
  local memory <close> = slots.memory(opt.types[1], comm,
    { largest_bytes = opt.maxbytes, unalign = 0, check = 1, local_register = 0 })
  for _, kind in ipairs(KINDS) do
    local wanted = kind == "latency" and opt.minbytes or opt.maxbytes
    local count = math.max(1, wanted // memory.type.bytes)
    local self = { rank = rank, opt = opt, comm = comm, stream = stream, memory = memory,
      count = count, bytes = count * memory.type.bytes }
    for source = 0, rank.count - 1 do
      for target = 0, rank.count - 1 do
        local is_twice = kind == "both_ways" and target < source
        if source ~= target and not is_twice then visit(self, kind, source, target) end
      end
    end
  end
end

function pairs_section.summarise(case)
  local time_us = case:slowest("pair_us")
  return { median_us = time_us.median, slow = "",
    gbps = case.size_bytes / 1000 / time_us.median }, time_us
end

-- Worse than others of its kind by more than this is marked.
local SLOW = 1.2

local function value(row)
  return row.kind == "latency" and row.median_us or row.gbps
end

local function mark(rows)
  local times = {}
  for i, row in ipairs(rows) do times[i] = row.median_us end
  local usual = stats.median(times)
  for _, row in ipairs(rows) do
    row.slow = row.median_us > SLOW * usual and "slow" or ""
  end
end

local function matrix(rows, ranks)
  local columns, lines = { { "from", "from" } }, {}
  for rank = 0, ranks - 1 do
    columns[rank + 2] = { "to " .. rank, "to" .. rank }
    lines[rank + 1] = { from = rank }
    for other = 0, ranks - 1 do lines[rank + 1]["to" .. other] = "" end
  end
  for _, row in ipairs(rows) do
    local text = ("%.2f%s"):format(value(row), row.slow ~= "" and " *" or "")
    lines[row.source + 1]["to" .. row.target] = text
    if row.kind == "both_ways" then lines[row.target + 1]["to" .. row.source] = text end
  end
  return report.table(columns, lines)
end

local TITLES = {
  latency = "Half a round trip of %d bytes, in microseconds",
  one_way = "One way, %d bytes, in GB/s",
  both_ways = "Both ways at once, %d bytes, in GB/s each way",
}

local function of_kind(rows, kind)
  local some = {}
  for _, row in ipairs(rows) do
    if row.kind == kind then some[#some + 1] = row end
  end
  return some
end

---The matrices, as markdown.
---@param rows table[] of the summary
---@param ranks integer
---@return string
function pairs_section.matrices(rows, ranks)
  local parts = {}
  for _, kind in ipairs(KINDS) do
    local some = of_kind(rows, kind)
    if #some > 0 then
      mark(some)
      local title = TITLES[kind]:format(some[1].size_bytes)
      parts[#parts + 1] = title .. ":\n\n" .. matrix(some, ranks)
    end
  end
  parts[#parts + 1] = ("`*`: slower than %.1f times the median."):format(SLOW)
  return table.concat(parts, "\n\n")
end

return pairs_section
