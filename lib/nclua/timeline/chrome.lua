--- A trace in the format of Chrome's and Perfetto's viewers.
local cjson = require("cjson")

local chrome = {}

local function text(value) return cjson.encode(value) end

local function title(lane)
  if lane.kind == "stream" then
    return ("device %s stream %s"):format(lane.device, lane.track)
  end
  return ("thread %s %s"):format(lane.track, lane.kind)
end

local function arguments(event)
  local parts = {}
  for _, key in ipairs({ "grid", "block", "correlation", "bytes" }) do
    if event[key] then parts[#parts + 1] = ('"%s":%d'):format(key, event[key]) end
  end
  return table.concat(parts, ",")
end

-- Tracks are numbered, since streams and threads have numbers of their own that may meet.
local function write_lane(write, lane, track)
  local process = lane.process or 0
  write((',\n{"ph":"M","pid":%d,"tid":%d,"name":"thread_name","args":{"name":%s}}'):format(
    process, track, text(title(lane))))
  write((',\n{"ph":"M","pid":%d,"tid":%d,"name":"thread_sort_index",'
    .. '"args":{"sort_index":%d}}'):format(process, track, track))
  for _, event in ipairs(lane.events) do
    write((',\n{"ph":"X","pid":%d,"tid":%d,"cat":"%s","name":%s,"ts":%.3f,"dur":%.3f,'
      .. '"args":{%s}}'):format(process, track, lane.kind, text(event.name),
      event.start / 1000, event.ns / 1000, arguments(event)))
  end
end

---@param lanes timeline.lane[]
---@param write fun(text: string)
function chrome.write(lanes, write)
  write('{"displayTimeUnit":"ns","traceEvents":[\n')
  write('{"ph":"M","pid":0,"name":"trace","args":{"by":"nclua"}}')
  for i, lane in ipairs(lanes) do write_lane(write, lane, i) end
  write("\n]}\n")
end

return chrome
