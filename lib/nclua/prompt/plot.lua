--- Curves on a terminal.
local plot = {}

local WIDTH, HEIGHT = 60, 14
local MARKS = { "*", "o", "+", "x", "#", "@" }

local function is_number(value)
  return type(value) == "number" and value == value and math.abs(value) ~= math.huge
end

-- Where a value is between two ends, from 0 to 1.
local function scale_of(values, is_log, what)
  local low, high
  for _, value in ipairs(values) do
    if is_log and value <= 0 then
      error(("plot: a logarithmic %s axis has no place for %s"):format(what, value), 0)
    end
    low, high = math.min(low or value, value), math.max(high or value, value)
  end
  local f = is_log and math.log or function(v) return v end
  local from, to = f(low), f(high)
  local span = to > from and to - from or 1
  return {
    low = low, high = high, is_log = is_log,
    place = function(value) return (f(value) - from) / span end,
    value = function(place)
      local v = from + place * span
      return is_log and math.exp(v) or v
    end,
  }
end

local UNITS = { { 1e12, "T" }, { 1e9, "G" }, { 1e6, "M" }, { 1e3, "k" }, { 1, "" } }

local function label(value)
  if value == 0 then return "0" end
  for _, unit in ipairs(UNITS) do
    if math.abs(value) >= unit[1] * 0.9995 then
      return ("%.3g%s"):format(value / unit[1], unit[2])
    end
  end
  return ("%.3g"):format(value)
end

local function as_list(values, what)
  local list = {}
  if type(values) ~= "table" and type(values) ~= "userdata" then
    error(("plot: %s: expected a list of numbers"):format(what), 0)
  end
  for i = 1, #values do
    if not is_number(values[i]) then
      error(("plot: %s[%d] is no finite number"):format(what, i), 0)
    end
    list[i] = values[i]
  end
  if #list == 0 then error(("plot: %s is empty"):format(what), 0) end
  return list
end

-- One list, or several by name.
local function curves_of(x, y)
  local curves = {}
  if type(y) == "table" and #y == 0 and next(y) ~= nil then
    for name, values in pairs(y) do
      curves[#curves + 1] = { name = name, y = as_list(values, "y." .. tostring(name)) }
    end
    table.sort(curves, function(a, b) return tostring(a.name) < tostring(b.name) end)
  else
    curves[1] = { y = as_list(y, "y") }
  end
  for _, curve in ipairs(curves) do
    if #curve.y ~= #x then
      error(("plot: %d values of x, but %d of y"):format(#x, #curve.y), 0)
    end
  end
  return curves
end

local function new_grid()
  local grid = {}
  for row = 1, HEIGHT do
    grid[row] = {}
    for column = 1, WIDTH do grid[row][column] = " " end
  end
  return grid
end

local function cell(scale, value, cells)
  return 1 + math.floor(scale.place(value) * (cells - 1) + 0.5)
end

local function draw(grid, x, curve, mark, across, up)
  local last_column, last_row
  for i = 1, #x do
    local column, row = cell(across, x[i], WIDTH), cell(up, curve.y[i], HEIGHT)
    for c = (last_column or column) + 1, column - 1 do
      local part = (c - last_column) / (column - last_column)
      local r = math.floor(last_row + part * (row - last_row) + 0.5)
      if grid[r][c] == " " then grid[r][c] = "." end
    end
    grid[row][column] = mark
    last_column, last_row = column, row
  end
end

local function frame(grid, across, up)
  local lines = {}
  for row = HEIGHT, 1, -1 do
    local has_label = row == HEIGHT or row == 1 or row == (HEIGHT + 1) // 2
    local text = has_label and label(up.value((row - 1) / (HEIGHT - 1))) or ""
    lines[#lines + 1] = ("%8s |%s"):format(text, table.concat(grid[row])):gsub("%s+$", "")
  end
  lines[#lines + 1] = (" "):rep(9) .. "+" .. ("-"):rep(WIDTH)
  local left, right = label(across.low), label(across.high)
  local middle = label(across.value(0.5))
  local before = WIDTH // 2 - #left - #middle // 2
  local after = WIDTH - #left - before - #middle - #right
  lines[#lines + 1] = (" "):rep(10) .. left .. (" "):rep(before) .. middle
    .. (" "):rep(after) .. right
  return lines
end

local function legend(lines, curves, o)
  local names = {}
  for i, curve in ipairs(curves) do
    if curve.name then
      names[#names + 1] = ("%s %s"):format(MARKS[(i - 1) % #MARKS + 1], curve.name)
    end
  end
  local axes = o.log and o.log ~= "" and "log " .. o.log or nil
  local parts = { o.title, table.concat(names, "   "), axes }
  local text = {}
  for i = 1, 3 do
    if parts[i] and parts[i] ~= "" then text[#text + 1] = parts[i] end
  end
  if #text > 0 then lines[#lines + 1] = (" "):rep(10) .. table.concat(text, "; ") end
end

---@class plot.options
---@field log? "x"|"y"|"xy" which axes are logarithmic
---@field title? string

---@param x number[]|stats.vector
---@param y number[]|stats.vector|table<string, number[]> one curve, or several by name
---@param options? plot.options
---@return string
function plot.text(x, y, options)
  local o, xs = options or {}, as_list(x, "x")
  local log, curves, all = o.log or "", curves_of(xs, y), {}
  for _, curve in ipairs(curves) do table.move(curve.y, 1, #curve.y, #all + 1, all) end
  local across = scale_of(xs, log:find("x") ~= nil, "x")
  local up = scale_of(all, log:find("y") ~= nil, "y")
  local grid = new_grid()
  for i, curve in ipairs(curves) do
    draw(grid, xs, curve, MARKS[(i - 1) % #MARKS + 1], across, up)
  end
  local lines = frame(grid, across, up)
  legend(lines, curves, o)
  return table.concat(lines, "\n")
end

---Prints the curve, or several: plot(x, y, { log = "xy" }),
--- plot(x, { ring = a, tree = b }).
---@param x number[]|stats.vector
---@param y number[]|stats.vector|table<string, number[]>
---@param options? plot.options
function plot.print(x, y, options)
  print(plot.text(x, y, options))
end

return plot
