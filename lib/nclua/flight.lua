--- Reads the ranks' flight recorders after a death or a hang: what each rank last did, as a
--- table for people, and which rank differs from the others.
local flight = {}

---@class flight.op
---@field name string "all_reduce"
---@field op_count integer from 0, per communicator
---@field count integer elements
---@field dtype string
---@field comm integer the communicator's number in its process, in order of first use
---@field peer? integer
---@field ago_us integer since it was enqueued

---@class flight.comm
---@field number integer
---@field enqueued integer operations so far
---@field completed integer
---@field enqueued_ago_us? integer
---@field completed_ago_us? integer

---@class flight.rank
---@field index integer
---@field state? string "running", "finished", or how it ended
---@field finished boolean
---@field barriers integer entered so far
---@field enqueued integer operations so far, over all communicators
---@field waiting? string what the host thread waits in
---@field waiting_us? integer
---@field ops flight.op[] the last 256 at most, oldest first
---@field comms flight.comm[]

local function seconds(us)
  return ("%.1f s"):format(us / 1e6)
end

local function op_text(op)
  local peer = op.peer and (" peer %d"):format(op.peer) or ""
  return ("%s #%d %s x %d%s"):format(op.name, op.op_count, op.dtype, op.count, peer)
end

local function last_op(rank)
  return rank.ops[#rank.ops]
end

local function comm_of(rank, number)
  for _, comm in ipairs(rank.comms) do
    if comm.number == number then return comm end
  end
end

local function op_at(rank, number, op_count)
  for i = #rank.ops, 1, -1 do
    local op = rank.ops[i]
    if op.comm == number and op.op_count == op_count then return op end
  end
end

-- The communicator of the last operation, or the first one.
local function last_comm(rank)
  local op = last_op(rank)
  return op and comm_of(rank, op.comm) or rank.comms[1]
end

local function enqueued_text(rank)
  local op = last_op(rank)
  if not op then return "nothing" end
  return ("%s (comm %d, %s ago)"):format(op_text(op), op.comm, seconds(op.ago_us))
end

local function completed_text(rank)
  local comm = last_comm(rank)
  if not comm or comm.completed == 0 then return "nothing" end
  local op = op_at(rank, comm.number, comm.completed - 1)
  local ago = comm.completed_ago_us and (" (%s ago)"):format(seconds(comm.completed_ago_us))
  return ("%s#%d%s"):format(op and op.name .. " " or "", comm.completed - 1, ago or "")
end

local function waiting_text(rank)
  if not rank.waiting then return "-" end
  return ("%s, %s"):format(rank.waiting, seconds(rank.waiting_us or 0))
end

---What one rank was doing, in a line.
---@param rank flight.rank
---@return string
function flight.describe(rank)
  local waits = rank.waiting and "waiting in " .. waiting_text(rank) or "in no wait"
  return ("%s; last enqueued %s; last completed %s"):format(
    waits, enqueued_text(rank), completed_text(rank))
end

local HEADER = { "rank", "state", "last enqueued", "last completed", "waits in" }

local function pad(cells, widths)
  local out = {}
  for i, cell in ipairs(cells) do
    out[i] = i < #cells and cell .. (" "):rep(widths[i] - #cell) or cell
  end
  return table.concat(out, "  ")
end

---A line for each rank: what it last enqueued and completed, what it waits in.
---@param ranks flight.rank[]
---@return string
function flight.table(ranks)
  local rows, widths, lines = { HEADER }, {}, {}
  for _, rank in ipairs(ranks) do
    local state = rank.state or (rank.finished and "finished" or "running")
    rows[#rows + 1] = { tostring(rank.index), state, enqueued_text(rank),
      completed_text(rank), waiting_text(rank) }
  end
  for _, row in ipairs(rows) do
    for i, cell in ipairs(row) do widths[i] = math.max(widths[i] or 0, #cell) end
  end
  for i, row in ipairs(rows) do lines[i] = pad(row, widths) end
  return table.concat(lines, "\n")
end

--- The value that most ranks have; the larger one if two are as frequent.
local function norm_of(values)
  local times, best = {}, nil
  for _, value in pairs(values) do times[value] = (times[value] or 0) + 1 end
  for value, n in pairs(times) do
    if not best or n > times[best] or (n == times[best] and value > best) then
      best = value
    end
  end
  return best
end

local function each_comm(ranks)
  local seen, list = {}, {}
  for _, rank in ipairs(ranks) do
    for _, comm in ipairs(rank.comms) do
      if not seen[comm.number] then
        seen[comm.number] = true
        list[#list + 1] = comm.number
      end
    end
  end
  table.sort(list)
  return list
end

--- The name of the operations from..to that some other rank has, if they are all alike.
local function name_of_range(ranks, number, from, to)
  local name
  for _, rank in ipairs(ranks) do
    for _, op in ipairs(rank.ops) do
      if op.comm == number and op.op_count >= from and op.op_count <= to then
        if name and name ~= op.name then return "operation" end
        name = op.name
      end
    end
  end
  return name or "operation"
end

local function last_text(count)
  return count == 0 and "nothing" or ("#%d"):format(count - 1)
end

-- "rank 2 is 1 all_reduce behind the others on comm 0: last enqueued #40, the others #41".
local function distance_text(ranks, rank, number, have, norm)
  local from, to = math.min(have, norm), math.max(have, norm) - 1
  return ("rank %d is %d %s %s the others on comm %d: last enqueued %s, the others %s")
    :format(rank.index, to - from + 1, name_of_range(ranks, number, from, to),
      have < norm and "behind" or "ahead of", number, last_text(have), last_text(norm))
end

local function add_distances(ranks, out)
  for _, number in ipairs(each_comm(ranks)) do
    local counts = {}
    for i, rank in ipairs(ranks) do
      local comm = comm_of(rank, number)
      counts[i] = comm and comm.enqueued or 0
    end
    local norm = norm_of(counts)
    for i, rank in ipairs(ranks) do
      if counts[i] ~= norm then
        out[#out + 1] = distance_text(ranks, rank, number, counts[i], norm)
      end
    end
  end
end

local ONE_SIDED = { send = true, recv = true }

-- What must be equal on all ranks. A rank's sends and receives are its own affair.
local function signature(op)
  if not op or ONE_SIDED[op.name] then return nil end
  return ("%s %s x %d%s"):format(op.name, op.dtype, op.count,
    op.peer and (" root %d"):format(op.peer) or "")
end

local function signatures_at(ranks, number, op_count)
  local found = {}
  for i, rank in ipairs(ranks) do found[i] = signature(op_at(rank, number, op_count)) end
  return found
end

local function add_call_mismatch(ranks, number, op_count, out)
  local found = signatures_at(ranks, number, op_count)
  local norm = norm_of(found)
  local any = false
  for i, rank in ipairs(ranks) do
    if found[i] and found[i] ~= norm then
      out[#out + 1] = ("call #%d on comm %d: rank %d made %s, the others %s")
        :format(op_count, number, rank.index, found[i], norm)
      any = true
    end
  end
  return any
end

-- The first call, of those that the recorders still hold, that is not the same everywhere.
local function add_mismatches(ranks, out)
  for _, number in ipairs(each_comm(ranks)) do
    local first, last = math.huge, -1
    for _, rank in ipairs(ranks) do
      for _, op in ipairs(rank.ops) do
        if op.comm == number then
          first, last = math.min(first, op.op_count), math.max(last, op.op_count)
        end
      end
    end
    for op_count = first, last do
      if add_call_mismatch(ranks, number, op_count, out) then break end
    end
  end
end

local function add_barriers(ranks, out)
  local counts = {}
  for i, rank in ipairs(ranks) do counts[i] = rank.barriers end
  local norm = norm_of(counts)
  for i, rank in ipairs(ranks) do
    if counts[i] ~= norm then
      out[#out + 1] = ("rank %d has entered %d barriers, the others %d")
        :format(rank.index, counts[i], norm)
    end
  end
end

local function add_idle(ranks, out)
  local idle = {}
  for _, rank in ipairs(ranks) do
    if not rank.waiting then idle[#idle + 1] = rank end
  end
  if #idle == 0 or #idle == #ranks then return end
  for _, rank in ipairs(idle) do
    local what = rank.finished and "has finished" or "waits for nothing"
    out[#out + 1] = ("rank %d %s while others wait"):format(rank.index, what)
  end
end

---Which ranks differ, the strongest sign first; empty if none does.
---@param ranks flight.rank[]
---@return string[]
function flight.diagnose(ranks)
  local out = {}
  if #ranks < 2 then return out end
  add_distances(ranks, out)
  add_mismatches(ranks, out)
  add_barriers(ranks, out)
  add_idle(ranks, out)
  return out
end

return flight
