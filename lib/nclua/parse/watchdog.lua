--- The lines by which PyTorch's NCCL watchdog says that a collective did not finish.
local watchdog = {}

local MOST = 1000

local TIMEOUT = "Watchdog caught collective operation timeout: WorkNCCL%((.-)%)"
  .. " ran for (%d+) milliseconds"
local STATUS = "failure detected by watchdog at work sequence id: (%-?%d+) PG status: "
  .. "last enqueued work: (%-?%d+), last completed work: (%-?%d+)"
local GROUP = "%[PG ID (%d+) PG GUID (%S-) Rank (%d+)%]"

---@class nclua.watchdog.timeout
---@field rank integer?
---@field sequence integer
---@field operation string "ALLREDUCE"
---@field elements_in integer
---@field elements_out integer
---@field timeout_ms integer
---@field ran_ms integer

---@class nclua.watchdog.status of a process group
---@field rank integer
---@field group_id integer
---@field group_name string? "default_pg"
---@field sequence integer of the work that failed
---@field enqueued integer last sequence
---@field completed integer last sequence; -1: none

function watchdog.new() return { timeouts = {}, pg_status = {}, left_out = 0 } end

local function integer(text) return math.tointeger(tonumber(text)) end

local function rank_of(text, rank)
  return integer(text:match("%[Rank (%d+)%]") or text:match("^%[rank(%d+)%]")) or rank
end

local function add(into, list, entry)
  if #list < MOST then
    list[#list + 1] = entry
  else
    into.left_out = into.left_out + 1
  end
end

local function take_timeout(into, text, rank)
  local work, ran = text:match(TIMEOUT)
  if not work then return false end
  local fields = {}
  for name, value in (work .. ","):gmatch("([%w()]+)=([^,]*),") do fields[name] = value end
  -- "Timeout(ms)=8000": the match above ends at its first bracket
  local limit = text:match("Timeout%(ms%)=(%d+)")
  add(into, into.timeouts, {
    rank = rank_of(text, rank), sequence = integer(fields.SeqNum),
    operation = fields.OpType, elements_in = integer(fields.NumelIn),
    elements_out = integer(fields.NumelOut), timeout_ms = integer(limit),
    ran_ms = integer(ran),
  })
  return true
end

local function take_status(into, text)
  local sequence, enqueued, completed = text:match(STATUS)
  local id, guid, rank = text:match(GROUP)
  if not sequence or not id then return false end
  add(into, into.pg_status, {
    rank = integer(rank), group_id = integer(id), group_name = guid:match("%((.-)%)"),
    sequence = integer(sequence), enqueued = integer(enqueued),
    completed = integer(completed),
  })
  return true
end

--- Takes a line if it is one of the watchdog's.
---@param into table from watchdog.new
---@param text string
---@param rank integer? the launcher's
---@return boolean
function watchdog.take(into, text, rank)
  if not text:find("atchdog", 1, true) then return false end
  return take_timeout(into, text, rank) or take_status(into, text)
end

return watchdog
