--- The events of a trace by lane, for pictures: a lane is a stream, or what a thread
--- called, or the ranges of a thread.
local events = {}

-- Of what each kind of lane is made: its title and query. Columns: lane's key, name, times,
-- and what a hover may add.
local KINDS = {
  { "stream", [[select process, device, stream, name, start, "end", grid, block,
      correlation, null as bytes from kernels
    union all select process, device, stream, kind, start, "end", null, null, correlation,
      bytes from copies
    union all select process, device, stream, 'fill', start, "end", null, null, correlation,
      bytes from fills]] },
  { "calls", [[select process, null as device, thread as stream, name, start, "end",
      null as grid, null as block, correlation, null as bytes from calls]] },
  { "ranges", [[select process, null as device, thread as stream, name, start, "end",
      null as grid, null as block, null as correlation, null as bytes from ranges]] },
}

---@class timeline.lane
---@field kind "stream"|"calls"|"ranges"
---@field process integer?
---@field device integer?
---@field track integer? stream or thread
---@field events table[] name, start (ns from the first event), ns, depth, grid, block,
---correlation, bytes

-- Events of one lane overlap where they nest (ranges) or by clocks' grain: each goes to the
-- first row that is free.
local function stack(lane, start, stop)
  local free = lane.free
  for depth = 1, #free do
    if free[depth] <= start then
      free[depth] = stop
      return depth - 1
    end
  end
  free[#free + 1] = stop
  return #free - 1
end

local function lane_of(lanes, kind, row)
  local key = ("%s/%s/%s/%s"):format(row.process, kind, row.device, row.stream)
  local lane = lanes[key]
  if lane then return lane end
  lane = { kind = kind, process = row.process, device = row.device, track = row.stream,
    events = {}, free = {} }
  lanes[key] = lane
  lanes[#lanes + 1] = lane
  return lane
end

local function add(lanes, kind, row, origin)
  local lane = lane_of(lanes, kind, row)
  lane.events[#lane.events + 1] = {
    name = row.name and tostring(row.name) or "?", start = row.start - origin,
    ns = row["end"] - row.start, depth = stack(lane, row.start, row["end"]),
    grid = row.grid, block = row.block, correlation = row.correlation, bytes = row.bytes,
  }
end

local ORDER = { ranges = 1, calls = 2, stream = 3 }

local function precedes(a, b)
  if a.process ~= b.process then return (a.process or 0) < (b.process or 0) end
  if a.kind ~= b.kind then return ORDER[a.kind] < ORDER[b.kind] end
  if a.device ~= b.device then return (a.device or 0) < (b.device or 0) end
  return (a.track or 0) < (b.track or 0)
end

---At most `most` events; those that began first.
---@param db sqlite.database as trace_file.open gives it
---@param origin integer ns
---@param most integer
---@return timeline.lane[] lanes by process, then ranges, calls, streams
---@return integer left_out
function events.lanes(db, origin, most)
  local lanes, count, left_out = {}, 0, 0
  for _, kind in ipairs(KINDS) do
    local total = db:value(("select count(*) from (%s)"):format(kind[2]))
    local room = math.max(0, most - count)
    left_out = left_out + math.max(0, total - room)
    count = count + math.min(total, room)
    for row in db:rows(('select * from (%s) order by start, "end" desc limit %d'):format(
      kind[2], room)) do
      add(lanes, kind[1], row, origin)
    end
  end
  table.sort(lanes, precedes)
  return lanes, left_out
end

return events
