--- A trace in a screen of text.
local text_table = require("nclua.text_table")
local timeline = require("nclua.timeline")

local summary = {}

local MOST_ROWS = 20

-- Three or four digits, however large.
local function us(value)
  if value == nil then return nil end
  local digits = value < 10 and 2 or value < 100 and 1 or 0
  return tonumber(("%." .. digits .. "f"):format(value))
end

local function percent(part, whole)
  if not part or not whole or whole == 0 then return nil end
  return tonumber(("%.1f"):format(100 * part / whole))
end

local SECTIONS = {
  { "kernels", timeline.kernels,
    { "name", "count", "total_us", "median_us", "p95_us", "max_us", "grid", "block" } },
  { "collectives, the n-th on all ranks together (us)", timeline.collectives,
    { "name", "count", "ranks", "grid", "wait_us", "skew_us", "skew_p95_us", "last_us",
      "whole_us" } },
  { "devices", timeline.devices,
    { "process", "device", "operations", "span_us", "busy_percent", "gaps",
      "longest_us" } },
  { "copies", timeline.copies, { "kind", "count", "bytes", "total_us", "gb_per_s" } },
  { "ranges", timeline.ranges, { "name", "count", "total_us", "median_us", "max_us" } },
  { "calls", timeline.calls, { "name", "count", "total_us", "median_us", "max_us" } },
  { "LOST while recording", timeline.lost, { "source", "count" } },
}

local function cell(row, column)
  if column == "busy_percent" then
    return percent(row.span_us - row.idle_us, row.span_us)
  end
  local value = row[column]
  local is_time = column:find("_us$") or column:find("_per_s$")
  return is_time and us(value) or value
end

local function section(write, title, columns, rows, most)
  if #rows == 0 then return end
  local cells = {}
  for r = 1, math.min(#rows, most) do
    cells[r] = {}
    for c, column in ipairs(columns) do cells[r][c] = cell(rows[r], column) end
  end
  write("\n", title, "\n", text_table.format(columns, cells, { indent = "  " }))
  if #rows > most then write(("  ... %d more (--all)\n"):format(#rows - most)) end
end

---@param db sqlite.database
---@param write fun(...: string)
---@param is_all? boolean every row, not the first 20 of a section
function summary.write(db, write, is_all)
  local span = timeline.span(db)
  if not span then
    write("nothing was recorded\n")
    return
  end
  local processes = db:value([[select count(distinct process) from (
    select process from kernels union select process from calls)]])
  write(("%.3f ms, %d process%s\n"):format((span.stop - span.start) / 1e6, processes,
    processes == 1 and "" or "es"))
  local most = is_all and math.maxinteger or MOST_ROWS
  for _, row in ipairs(SECTIONS) do
    section(write, row[1], row[3], row[2](db), most)
  end
end

return summary
