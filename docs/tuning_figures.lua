--- Draws the figures of docs/tuning.md from the cost model alone:
---
---   nclua docs/tuning_figures.lua [FOLDER]    default: docs
local cost_model = require("nclua.cost_model")
local files = require("nclua.files")
local presets = require("nclua.presets")
local size = require("nclua.size")

local PRESET, VERSION = "dgx-h100", "2.28.3"
local COLORS = {
  ["Ring/LL"] = "#4477aa", ["Ring/LL128"] = "#66ccee", ["Ring/Simple"] = "#228833",
  ["Tree/LL"] = "#ee6677", ["Tree/LL128"] = "#ccbb44", ["Tree/Simple"] = "#aa3377",
  ["NVLS/Simple"] = "#777777", ["NVLSTree/Simple"] = "#222222",
}

local function model_of(nodes)
  return assert(cost_model.model(assert((presets.system(PRESET, nodes, VERSION)))))
end

local function escape(text)
  return (text:gsub("&", "&amp;"):gsub("<", "&lt;"))
end

local function text(x, y, words, more)
  return ('<text x="%.1f" y="%.1f" %s>%s</text>'):format(x, y, more or "", escape(words))
end

local function line(points, color, width)
  local list = {}
  for i, point in ipairs(points) do list[i] = ("%.1f,%.1f"):format(point[1], point[2]) end
  return ('<polyline points="%s" fill="none" stroke="%s" stroke-width="%g"/>'):format(
    table.concat(list, " "), color, width)
end

local function document(width, height, title, parts)
  local head = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" '
    .. 'height="%d" font-family="sans-serif" font-size="12">'
  return table.concat({ head:format(width, height, width, height),
    '<rect width="100%" height="100%" fill="white"/>',
    text(10, 18, title, 'font-weight="bold"'), table.concat(parts, "\n"), "</svg>\n" },
    "\n")
end

-- Where a size and a time are, on logarithmic axes.
local LEFT, TOP, STEP, DECADE = 60, 40, 22, 110
local FIRST, LAST, FLOOR, DECADES = 10, 30, 10, 3

local function x_of(log) return LEFT + (log - FIRST) * STEP end

local function y_of(time)
  return TOP + DECADE * (DECADES - math.log(time / FLOOR, 10))
end

local function axes(parts)
  for log = FIRST, LAST, 2 do
    parts[#parts + 1] =
      line({ { x_of(log), y_of(FLOOR) }, { x_of(log), TOP } }, "#eeeeee", 1)
    parts[#parts + 1] = text(x_of(log), y_of(FLOOR) + 16, size.format(1 << log),
      'text-anchor="middle" font-size="9"')
  end
  for decade = 0, DECADES do
    local time = FLOOR * 10 ^ decade
    parts[#parts + 1] =
      line({ { LEFT, y_of(time) }, { x_of(LAST), y_of(time) } }, "#dddddd", 1)
    parts[#parts + 1] = text(LEFT - 6, y_of(time) + 4, ("%d us"):format(time),
      'text-anchor="end" font-size="10"')
  end
end

-- One cell's predicted times; nil if it is off.
local function curve(model, algorithm, protocol)
  local points = {}
  for half = 2 * FIRST, 2 * LAST do
    local bytes = math.floor(2 ^ (half / 2))
    local costs = cost_model.costs(model, "all_reduce", bytes)
    local time = costs[algorithm] and costs[algorithm][protocol] or -1
    if time > 0 and time <= FLOOR * 10 ^ DECADES then
      points[#points + 1] = { x_of(half / 2), y_of(time) }
    end
  end
  return #points > 1 and points or nil
end

local function envelope(model)
  local points = {}
  for half = 2 * FIRST, 2 * LAST do
    local costs = cost_model.costs(model, "all_reduce", math.floor(2 ^ (half / 2)))
    local _, _, time = cost_model.choose(costs)
    points[#points + 1] = { x_of(half / 2), y_of(math.min(time, FLOOR * 10 ^ DECADES)) }
  end
  return points
end

local function draw_times()
  local model, parts, shown = model_of(1), {}, 0
  axes(parts)
  parts[#parts + 1] = line(envelope(model), "#ffdd88", 9)
  for _, algorithm in ipairs(cost_model.names.ALGORITHMS) do
    for _, protocol in ipairs(cost_model.names.PROTOCOLS) do
      local name = algorithm .. "/" .. protocol
      local points = curve(model, algorithm, protocol)
      if points then
        local y = TOP + 10 + 18 * shown
        parts[#parts + 1] = line(points, COLORS[name], 1.6)
        parts[#parts + 1] = line({ { x_of(LAST) + 14, y }, { x_of(LAST) + 34, y } },
          COLORS[name], 3)
        parts[#parts + 1] = text(x_of(LAST) + 40, y + 4, name)
        shown = shown + 1
      end
    end
  end
  parts[#parts + 1] = text(x_of(LAST) + 14, TOP + 22 + 18 * shown, "yellow: the cheapest")
  return document(x_of(LAST) + 170, y_of(FLOOR) + 30,
    "AllReduce on 8 H100 of one node: predicted time by message size", parts)
end

local CELL = 20

local function draw_map()
  local parts, used, order = {}, {}, {}
  for row = 0, 14 do
    local model, y = model_of(1 << row), TOP + row * CELL
    parts[#parts + 1] = text(LEFT + 26, y + 14, ("%d"):format(1 << row),
      'text-anchor="end" font-size="10"')
    for log = FIRST, 32 do
      local choice = assert(cost_model.select(model, "all_reduce", 1 << log))
      local name = choice.algorithm .. "/" .. choice.protocol
      if not used[name] then used[name], order[#order + 1] = true, name end
      parts[#parts + 1] = ('<rect x="%d" y="%d" width="%d" height="%d" fill="%s"/>')
        :format(LEFT + 32 + (log - FIRST) * CELL, y, CELL - 1, CELL - 1, COLORS[name])
    end
  end
  local bottom = TOP + 15 * CELL
  for log = FIRST, 32, 2 do
    parts[#parts + 1] = text(LEFT + 42 + (log - FIRST) * CELL, bottom + 14,
      size.format(1 << log), 'text-anchor="middle" font-size="9"')
  end
  parts[#parts + 1] = text(10, TOP + 14, "nodes")
  for i, name in ipairs(order) do
    local x, y = LEFT + 32 + (i - 1) % 3 * 150, bottom + 28 + (i - 1) // 3 * 20
    parts[#parts + 1] = ('<rect x="%d" y="%d" width="12" height="12" fill="%s"/>'):format(x,
      y, COLORS[name])
    parts[#parts + 1] = text(x + 17, y + 10, name)
  end
  return document(LEFT + 60 + 23 * CELL, bottom + 80,
    "What NCCL chooses for AllReduce, by nodes of 8 H100 and message size", parts)
end

local folder = arg[1] or "docs"
assert(files.write(folder .. "/tuning-times.svg", draw_times()))
assert(files.write(folder .. "/tuning-map.svg", draw_map()))
