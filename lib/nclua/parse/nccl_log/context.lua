--- Contexts: what one thread of one process said while it initialised one communicator.
--- All lines name their thread; which communicator they belong to is only said by some.
local context = { HANDLERS = {} }

local MOST_CONTEXTS = 1024
local MOST_ORDERS = 64

local function new(self, thread, line)
  if #self.contexts == MOST_CONTEXTS then
    self.is_full = true
    self:leave_out("communicator ranks")
    self.threads[thread] = nil
    return nil
  end
  local speaker = thread > 0 and self.scanner:thread(thread) or {}
  local one = {
    first_line = line, process = speaker.process, host = speaker.host, pid = speaker.pid,
    tid = speaker.tid, device = speaker.device, graphs = {}, order = {},
  }
  self.contexts[#self.contexts + 1] = one
  self.threads[thread] = one
  return one
end

--- The context that a thread is in; nil if there are already too many.
function context.of(self, thread, line)
  local one = self.threads[thread]
  if one and not one.is_complete then return one end
  return new(self, thread, line)
end

--- A new one: the line begins another communicator.
function context.fresh(self, thread, line) return new(self, thread, line) end

local STATE = "%s?%- (%u%l+ %u+)%s*$"

-- "comm 0x5 rank 0 nRanks 4": pairs of a word and a value. In a line that another message
-- ran into, the last value may be half of one.
local function pairs_of(text, is_glued)
  local found, last = {}, nil
  local body = text:match("comm .*") or ""
  for key, value in body:gsub(STATE, ""):gmatch("(%a+) (%S+)") do
    found[key] = value
    last = key
  end
  if is_glued and last then found[last] = nil end
  return found
end

local function integer(text, base) return text and math.tointeger(tonumber(text, base)) end

local function comm_key(one, comm) return (one.process or "?") .. " " .. comm end

-- The context of a communicator that this process already spoke of.
local function known(self, thread, comm)
  local speaker = thread > 0 and self.scanner:thread(thread) or {}
  return self.by_comm[comm_key(speaker, comm)]
end

local function remember(self, one, comm)
  one.comm = comm
  self.by_comm[comm_key(one, comm)] = one
end

-- Which context a line about `comm` belongs to.
local function context_for(self, thread, line, comm)
  local one = self.threads[thread]
  if one and not one.is_complete and (not one.comm or one.comm == comm) then return one end
  local other = known(self, thread, comm)
  if other and not other.is_complete then return other end
  return new(self, thread, line)
end

local function set_geometry(self, thread, line, found)
  local one = context_for(self, thread, line, found.comm)
  if not one then return end
  remember(self, one, found.comm)
  one.rank, one.ranks = integer(found.rank), integer(found.nRanks)
  one.nodes = integer(found.nNodes)
  one.local_ranks, one.local_rank = integer(found.localRanks), integer(found.localRank)
  if found.MNNVL then one.is_mnnvl = found.MNNVL ~= "0" end
end

local FIELDS = {
  { "rank", "rank" }, { "ranks", "nranks" }, { "cuda_device", "cudaDev" },
  { "nvml_device", "nvmlDev" }, { "color", "color" }, { "key", "key" },
}

local function set_identity(one, found)
  for _, field in ipairs(FIELDS) do
    one[field[1]] = integer(found[field[2]]) or one[field[1]]
  end
  one.bus_id = found.busId or one.bus_id
  one.comm_id = found.commId or one.comm_id
  one.parent = found.parent or one.parent
  one.child = integer(found.splitCount or found.childCount) or one.child
end

-- START and COMPLETE of an initialisation, and the end of a communicator.
local function set_state(self, text, thread, line, found, state)
  local one
  if state == "Init START" then
    one = new(self, thread, line)
  elseif state == "Init COMPLETE" then
    one = context_for(self, thread, line, found.comm)
  else
    one = known(self, thread, found.comm) or new(self, thread, line)
  end
  if not one then return end
  one.call = text:match("^(ncclComm%a+)") or text:match("%] (ncclComm%a+)") or one.call
  remember(self, one, found.comm)
  set_identity(one, found)
  one.state = state:lower()
  one.is_complete = state ~= "Init START"
  if state == "Init COMPLETE" then one.complete_line = line end
end

-- A message that the line was cut in: rank and size are still worth keeping.
local function set_cut(self, text, thread, line, found)
  self:issue(line, "a communicator line that was cut", text)
  if not found.comm then return end
  local one = context_for(self, thread, line, found.comm)
  if not one then return end
  remember(self, one, found.comm)
  one.rank = integer(found.rank) or one.rank
  one.ranks = integer(found.nRanks or found.nranks) or one.ranks
end

function context.HANDLERS.init(self, text, line, thread, is_glued)
  local found = pairs_of(text, is_glued)
  local state = text:match(STATE)
  if found.comm and found.rank and state then
    set_state(self, text, thread, line, found, state)
  elseif found.comm and found.nNodes then
    set_geometry(self, thread, line, found)
    if not found.localRank then
      self:issue(line, "a communicator line that was cut", text)
    end
  else
    set_cut(self, text, thread, line, found)
  end
end

-- "Init timings - ncclCommInitRank: rank 0 nranks 2 total 0.45 (kernels 0.38, ...)"
function context.HANDLERS.timings(self, text, line, thread)
  local rank, total, parts = text:match("rank (%d+) nranks %d+ total ([%d.]+) %((.*)%)")
  local one = self.threads[thread]
  if not rank then return self:issue(line, "timings that were cut", text) end
  if not one or one.rank ~= integer(rank) then return end
  one.timings_s = { total = tonumber(total) }
  for name, value in parts:gmatch("(%a+) ([%d.]+)") do
    one.timings_s[name] = tonumber(value)
  end
end

local COUNTS = {
  { "coll", "coll channels" }, { "collnet", "collnet channels" },
  { "nvls", "nvls channels" }, { "p2p", "p2p channels" },
  { "p2p_per_peer", "p2p channels per peer" },
}

-- "24 coll channels, 24 collnet channels, 0 nvls channels, 32 p2p channels, ..."
function context.HANDLERS.channels(self, text, line, thread, is_glued)
  local one = context.of(self, thread, line)
  if not one then return end
  local counts, number = {}, 0
  for count, name in text:gmatch("(%d+) ([%a%d ]+)") do
    for _, known_name in ipairs(COUNTS) do
      if name == known_name[2] then counts[known_name[1]] = integer(count) end
    end
    number = number + 1
  end
  one.channels = counts
  if is_glued and not counts.p2p_per_peer then
    self:issue(line, "channel counts that were cut", text)
  end
end

-- "8/8/64 | 16/8/64 | 512 | 512": lists of numbers
function context.HANDLERS.thresholds(self, text, line, thread)
  local one = context.of(self, thread, line)
  if not one then return end
  one.thresholds = {}
  for group in text:gsub("^%a+ ", ""):gmatch("[^|]+") do
    local numbers = {}
    for word in group:gmatch("%-?%d+") do numbers[#numbers + 1] = integer(word) end
    table.insert(one.thresholds, numbers)
  end
end

-- "Channel 00/24 : 0 1", up to 2.4 "Channel 00 :    0   1": all ranks in a ring's order
function context.HANDLERS.order(self, text, line, thread, is_glued)
  local channel, total, ranks = text:match("^Channel (%d+)/?(%d*) : ([%s%d.]*)$")
  if not channel or is_glued then
    return self:issue(line, "a channel's order that was cut", text)
  end
  local one = context.of(self, thread, line)
  if not one then return end
  one.declared_channels = integer(total) or one.declared_channels
  if #one.order < MOST_ORDERS then table.insert(one.order, self:keep(ranks)) end
end

-- "Trees [0] 1/-1/-1->0->-1 [1] ...": kept as text; NCCL itself cuts long ones.
function context.HANDLERS.trees(self, text, line, thread, is_glued)
  if is_glued then self:issue(line, "trees that another message ran into", text) end
  local one = context.of(self, thread, line)
  if one then one.trees = self:keep(text) end
end

function context.HANDLERS.connected(self, text, _, thread)
  local one = self.threads[thread]
  if one then one.connected = text end
end

return context
