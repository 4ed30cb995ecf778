--- The steps of a collective as a picture: above, ranks against steps, an arrow a transfer;
--- below, ranks against time. A chunk keeps its colour everywhere.
local anatomy = require("nclua.anatomy")

local svg = {}

local WIDTH, MARGIN = 1120, 20
local ROW, BOX = 46, 26      -- of the upper half: distance of steps, height of one
local LANE, BAR = 34, 22     -- of the lower half
local LABELS = 100           -- room left of both
local TICK = 24              -- half the width of a time
local ROWS = 40              -- of steps drawn in a channel
local TICKS = 8

local STYLE = [[
text { font: 12px sans-serif; fill: #222 } .title { font-size: 16px; font-weight: bold }
.head { font-weight: bold; text-anchor: middle } .in { text-anchor: middle }
.axis { stroke: #ccc } .tick { fill: #666; text-anchor: middle; font-size: 11px }
.hop { fill: none; stroke-width: 1.4; stroke-opacity: 0.55 }
.wait { fill-opacity: 0.22 } .box { stroke: #555; stroke-width: 0.6 }]]

local Canvas = {}
Canvas.__index = Canvas

function Canvas:add(format, ...)
  self[#self + 1] = format:format(...)
end

function Canvas:text(class, x, y, words)
  self:add('<text class="%s" x="%.1f" y="%.1f">%s</text>', class, x, y, words)
end

local function colour(channel, step)
  if not step.chunk then return "#ddd" end
  local hue = step.chunk * 360 // math.max(#channel.chunks, 1)
  return ("hsl(%d,65%%,72%%)"):format(hue)
end

local function stroke(channel, step)
  return (colour(channel, step):gsub("72%%", "45%%"))
end

-- What a pointer that rests on a step is told.
local function hint(model, step)
  return ("%s, %d bytes, %.1f to %.1f us, waited %.1f us"):format(
    step.kind:gsub("_", " "), step.bytes, (step.begin_ns - model.begin_ns) / 1000,
    (step.end_ns - model.begin_ns) / 1000, step.wait_ns / 1000)
end

local function column(model, rank)
  local width = (WIDTH - 2 * MARGIN - LABELS) / model.ranks
  return MARGIN + LABELS + width * (rank + 0.5), math.min(width * 0.72, 170)
end

local function hop(canvas, model, channel, step, source, top)
  local x1 = column(model, source.rank)
  local x2 = column(model, step.rank)
  local y1, y2 = top + (source.level - 1) * ROW + BOX, top + (step.level - 1) * ROW
  local bend = math.max(math.abs(y2 - y1) / 2, 14)
  canvas:add('<path class="hop" stroke="%s" marker-end="url(#arrow)" '
    .. 'd="M%.1f,%.1f C%.1f,%.1f %.1f,%.1f %.1f,%.1f"/>', stroke(channel, source),
    x1, y1, x1, y1 + bend, x2, y2 - bend, x2, y2)
end

local function hops(canvas, model, channel, rows, top)
  for rank = 0, model.ranks - 1 do
    for _, step in ipairs(channel.ranks[rank] or {}) do
      for _, source in ipairs(step.level <= rows and step.fed_by or {}) do
        hop(canvas, model, channel, step, source, top)
      end
    end
  end
end

local function boxes(canvas, model, channel, rows, top)
  for rank = 0, model.ranks - 1 do
    local x, width = column(model, rank)
    for _, step in ipairs(channel.ranks[rank] or {}) do
      if step.level > rows then break end
      local y = top + (step.level - 1) * ROW
      canvas:add('<rect class="box" x="%.1f" y="%.1f" width="%.1f" height="%d" rx="4" '
        .. 'fill="%s"><title>%s</title></rect>', x - width / 2, y, width, BOX,
        colour(channel, step), hint(model, step))
      canvas:text("in", x, y + 17, anatomy.label(step))
    end
  end
end

local function grid(canvas, model, channel, y)
  local rows = math.min(channel.length, ROWS)
  canvas:text("head", MARGIN + 40, y + 14, "channel " .. channel.number)
  for rank = 0, model.ranks - 1 do
    canvas:text("head", column(model, rank), y + 14, "rank " .. rank)
  end
  local top = y + 28
  for row = 1, rows do
    canvas:text("", MARGIN, top + (row - 1) * ROW + 17, "step " .. row - 1)
  end
  hops(canvas, model, channel, rows, top)
  boxes(canvas, model, channel, rows, top)
  local bottom = top + rows * ROW
  if rows < channel.length then
    canvas:text("", MARGIN, bottom, ("%d more steps"):format(channel.length - rows))
    bottom = bottom + 20
  end
  return bottom
end

local function scale_of(model)
  local span = math.max(model.end_ns - model.begin_ns, 1)
  local room = WIDTH - 2 * MARGIN - LABELS - TICK
  return function(ns) return MARGIN + LABELS + (ns - model.begin_ns) * room / span end
end

local function bar(canvas, class, fill, from, to, y, words)
  if to <= from then return end
  canvas:add('<rect class="%s" x="%.2f" y="%.1f" width="%.2f" height="%d" fill="%s">'
    .. "<title>%s</title></rect>", class, from, y, to - from, BAR, fill, words)
end

local function lane(canvas, model, channel, rank, y, x_of)
  canvas:text("", MARGIN, y + 15, ("rank %d, ch %d"):format(rank, channel.number))
  for _, step in ipairs(channel.ranks[rank] or {}) do
    local fill, words = colour(channel, step), hint(model, step)
    local ready = step.begin_ns + step.delay_ns
    local moving = math.min(ready + step.wait_ns, step.end_ns)
    bar(canvas, "box", "url(#late)", x_of(step.begin_ns), x_of(ready), y, words)
    bar(canvas, "wait", stroke(channel, step), x_of(ready), x_of(moving), y, words)
    bar(canvas, "box", fill, x_of(moving), x_of(step.end_ns), y, words)
    step.x, step.y = x_of(step.end_ns), y + BAR / 2
  end
end

local function axis(canvas, model, x_of, top, bottom)
  for i = 0, TICKS do
    local ns = model.begin_ns + (model.end_ns - model.begin_ns) * i // TICKS
    canvas:add('<line class="axis" x1="%.1f" x2="%.1f" y1="%.1f" y2="%.1f"/>', x_of(ns),
      x_of(ns), top, bottom)
    local us = (ns - model.begin_ns) / 1000
    canvas:text("tick", x_of(ns), bottom + 14, ("%.1f us"):format(us))
  end
end

local function transfers(canvas, model)
  for channel, _, step in anatomy.each(model) do
    for _, source in ipairs(step.fed_by) do
      if source.x <= step.x then
        canvas:add('<line class="hop" stroke="%s" x1="%.1f" y1="%.1f" x2="%.1f" '
          .. 'y2="%.1f"/>', stroke(channel, source), source.x, source.y, step.x, step.y)
      end
    end
  end
end

local function timeline(canvas, model, y)
  local x_of, lanes = scale_of(model), model.ranks * #model.channels
  canvas:text("title", MARGIN, y + 14, "Time (pale: waits for a peer; hatched: delayed)")
  local top = y + 28
  axis(canvas, model, x_of, top - 4, top + lanes * LANE)
  for i = 0, lanes - 1 do
    local channel = model.channels[i % #model.channels + 1]
    lane(canvas, model, channel, i // #model.channels, top + i * LANE, x_of)
  end
  transfers(canvas, model)
  return top + lanes * LANE + 24
end

local DEFINITIONS = [[
<defs><marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="6"
markerHeight="6" orient="auto"><path d="M0,0 L8,4 L0,8 z" fill="#555"/></marker>
<pattern id="late" width="6" height="6" patternUnits="userSpaceOnUse"
patternTransform="rotate(45)"><rect width="6" height="6" fill="#fff"/>
<rect width="3" height="6" fill="#c33"/></pattern></defs>]]

---@param model anatomy.model
---@param title string plain text
---@return string svg a whole file
function svg.encode(model, title)
  local canvas = setmetatable({}, Canvas)
  canvas:text("title", MARGIN, MARGIN + 14, title)
  local y = MARGIN + 40
  for _, channel in ipairs(model.channels) do y = grid(canvas, model, channel, y) + 20 end
  local height = timeline(canvas, model, y) + MARGIN
  local head = ('<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d">'):format(
    WIDTH, height)
  return table.concat({ head, "<style>" .. STYLE .. "</style>", DEFINITIONS,
    '<rect width="100%" height="100%" fill="#fff"/>', table.concat(canvas, "\n"),
    "</svg>\n" }, "\n")
end

return svg
