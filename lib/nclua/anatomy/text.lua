--- The steps of a collective as text: ranks against steps, and ranks against time.
local anatomy = require("nclua.anatomy")

local text = {}

local ROWS = 64 -- of steps shown in a channel
local TIMELINE = 72
local DELAYED, WAITING, MOVING = "▒", "░", "█"

text.LEGEND = "3→ received from rank 3, + added to the own input, c0 chunk 0, "
  .. "= kept, →1 sent to rank 1"

local function pad(label, width)
  return label .. (" "):rep(width - utf8.len(label))
end

-- A rank has at most one step on a level.
local function grid_rows(channel, ranks)
  local rows = { { "step" } }
  for rank = 0, ranks - 1 do rows[1][rank + 2] = "rank " .. rank end
  for level = 1, math.min(channel.length, ROWS) do
    local row = { ("%4d"):format(level - 1) }
    for rank = 0, ranks - 1 do row[rank + 2] = "" end
    rows[level + 1] = row
  end
  for rank = 0, ranks - 1 do
    for _, step in ipairs(channel.ranks[rank] or {}) do
      local row = rows[step.level + 1]
      if row then row[rank + 2] = anatomy.label(step) end
    end
  end
  return rows
end

local function print_rows(rows, lines)
  local widths = {}
  for _, row in ipairs(rows) do
    for i, cell in ipairs(row) do
      widths[i] = math.max(widths[i] or 0, utf8.len(cell))
    end
  end
  for _, row in ipairs(rows) do
    local cells = {}
    for i, cell in ipairs(row) do cells[i] = pad(cell, widths[i]) end
    lines[#lines + 1] = (table.concat(cells, "  "):gsub("%s+$", ""))
  end
end

local function chunk_line(channel)
  local chunks, smallest, largest = channel.chunks, math.maxinteger, 0
  for _, chunk in ipairs(chunks) do
    smallest, largest = math.min(smallest, chunk.bytes), math.max(largest, chunk.bytes)
  end
  local sizes = smallest == largest and ("%d"):format(largest)
    or ("%d to %d"):format(smallest, largest)
  return ("channel %d: %d chunks of %s bytes"):format(channel.number, #chunks, sizes)
end

---A column a rank, a row a step: what would happen at the same time if all steps took as
---long as each other.
---@param model anatomy.model
---@return string
function text.grid(model)
  local lines = {}
  for _, channel in ipairs(model.channels) do
    lines[#lines + 1] = chunk_line(channel)
    print_rows(grid_rows(channel, model.ranks), lines)
    if channel.length > ROWS then
      lines[#lines + 1] = ("%d more steps"):format(channel.length - ROWS)
    end
  end
  return table.concat(lines, "\n")
end

-- What a rank did in each slice of time: the last thing that it began there.
local function paint(cells, step, model, width)
  local span = math.max(model.end_ns - model.begin_ns, 1)
  local function cell(ns)
    return math.min((ns - model.begin_ns) * width // span, width - 1)
  end
  local function fill(from, to, mark)
    if to <= from then return end
    for i = cell(from), cell(to - 1) do cells[i + 1] = mark end
  end
  local moved = step.begin_ns + step.delay_ns
  fill(step.begin_ns, moved, DELAYED)
  fill(moved, moved + step.wait_ns, WAITING)
  fill(moved + step.wait_ns, step.end_ns, MOVING)
end

---A line a rank and channel, from the first step's begin to the last one's end.
---@param model anatomy.model
---@return string
function text.timeline(model)
  local lines = { ("%.1f us; %s delayed, %s waiting for a peer, %s moving data"):format(
    (model.end_ns - model.begin_ns) / 1000, DELAYED, WAITING, MOVING) }
  for rank = 0, model.ranks - 1 do
    for _, channel in ipairs(model.channels) do
      local cells = {}
      for i = 1, TIMELINE do cells[i] = " " end
      for _, step in ipairs(channel.ranks[rank] or {}) do
        paint(cells, step, model, TIMELINE)
      end
      lines[#lines + 1] = ("rank %d channel %d |%s|"):format(rank, channel.number,
        table.concat(cells))
    end
  end
  return table.concat(lines, "\n")
end

return text
