--- A trace as one HTML file that needs nothing else.
local cjson = require("cjson")
local embedded = require("nclua.embedded")

local page = {}

local function text(value)
  return (cjson.encode(value):gsub("</", "<\\/")) -- it stands within a script element
end

-- Texts once, by number.
local function numberer()
  local texts, numbers = {}, {}
  return function(name)
    if not numbers[name] then
      texts[#texts + 1] = text(name)
      numbers[name] = #texts - 1
    end
    return numbers[name]
  end, texts
end

-- start, ns, name, depth, grid, block, correlation, bytes: what is missing at the end is
-- left out.
local function write_event(write, event, number)
  local extra = { event.grid or 0, event.block or 0, event.correlation or 0,
    event.bytes or 0 }
  while extra[1] and extra[#extra] == 0 do extra[#extra] = nil end
  local tail = #extra > 0 and "," .. table.concat(extra, ",") or ""
  write(("[%d,%d,%d,%d%s]"):format(event.start, event.ns, number(event.name), event.depth,
    tail))
end

local function label(lane)
  if lane.kind == "stream" then
    return ("device %s stream %s"):format(lane.device or "?", lane.track or "?")
  end
  return ("thread %s %s"):format(lane.track or "?", lane.kind)
end

local function write_lanes(write, lanes, number)
  for i, lane in ipairs(lanes) do
    write(('%s{"kind":"%s","process":%s,"label":%s,"rows":%d,"events":['):format(
      i > 1 and ",\n" or "", lane.kind, lane.process or "null", text(label(lane)),
      #lane.free))
    for e, event in ipairs(lane.events) do
      if e > 1 then write(",") end
      write_event(write, event, number)
    end
    write("]}")
  end
end

---@param lanes timeline.lane[]
---@param about { title: string, span_ns: integer, left_out: integer }
---@param write fun(text: string)
function page.write(lanes, about, write)
  local html = assert(embedded.source("page:timeline"))
  local head, tail = html:match("^(.-)/%*DATA%*/(.*)$")
  local number, texts = numberer()
  write(head)
  write(('{"title":%s,"span":%d,"leftOut":%d,"lanes":[\n'):format(text(about.title),
    about.span_ns, about.left_out))
  write_lanes(write, lanes, number)
  write('],"names":[' .. table.concat(texts, ",") .. "]}")
  write(tail)
end

return page
