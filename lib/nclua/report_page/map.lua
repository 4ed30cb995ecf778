--- The map of a forced sweep: for every size, how much slower each choice is than the best.
local map = {}

local html = require("nclua.html")
local size = require("nclua.size")

local function choice_of(row)
  if row.algorithm == "auto" then return "auto" end
  local channels = tonumber(row.channels) or 0
  local name = ("%s/%s"):format(row.algorithm, row.protocol)
  return channels > 0 and ("%s/%d"):format(name, channels) or name
end

local function is_of_a_sweep(row)
  return row.size_bytes and row.algorithm and row.protocol and row.median_time_us ~= nil
end

-- Times by choice and size; choices that were never measured are not in it.
local function collect(rows)
  local sizes, choices, times, best = {}, {}, {}, {}
  for _, row in ipairs(rows) do
    local time = tonumber(row.median_time_us)
    if is_of_a_sweep(row) and time and time > 0 then
      local choice, bytes = choice_of(row), row.size_bytes
      if not times[choice] then times[choice], choices[#choices + 1] = {}, choice end
      if not best[bytes] then sizes[#sizes + 1] = bytes end
      times[choice][bytes] = time
      if row.algorithm ~= "auto" then
        best[bytes] = math.min(best[bytes] or math.huge, time)
      else
        best[bytes] = best[bytes] or math.huge
      end
    end
  end
  table.sort(sizes)
  table.sort(choices)
  return sizes, choices, times, best
end

-- Five steps of colour; the number says the same.
local function step(ratio)
  for i, limit in ipairs({ 1, 1.05, 1.25, 2 }) do
    if ratio <= limit then return i end
  end
  return 5
end

local function cell(time, best)
  if not time then return "<td></td>" end
  local ratio = time / best
  return ('<td class="n heat%d" data-value="%s">%s</td>'):format(step(ratio), ratio,
    ratio <= 1 and "best" or ("%.2f"):format(ratio))
end

---@param name string of the file
---@param rows table[] of a sweep's table
---@return string? html nil if the table is none of a sweep
function map.of(name, rows)
  local sizes, choices, times, best = collect(rows)
  if #choices < 2 then return nil end
  local headings, lines = { '<th scope="col">choice</th>' }, {}
  for _, bytes in ipairs(sizes) do
    headings[#headings + 1] = ('<th scope="col">%s</th>'):format(size.format(bytes))
  end
  for i, choice in ipairs(choices) do
    local cells = { ('<td>%s</td>'):format(html.escape(choice)) }
    for _, bytes in ipairs(sizes) do
      cells[#cells + 1] = cell(times[choice][bytes], best[bytes])
    end
    lines[i] = "<tr>" .. table.concat(cells) .. "</tr>"
  end
  local caption = ("Winners (%s): median time of each choice as a multiple of the best"
    .. " forced one of that size"):format(name)
  return html.raw_table(caption, headings, lines)
end

return map
