--- Markdown: tables and lists, as text.
local report = {}

---@class report.column
---@field [1] string heading
---@field [2] string field of a row
---@field [3]? string format, "%s" if there is none; "%%" formats a ratio as a percentage

local function cell(row, column)
  local value, format = row[column[2]], column[3]
  if value == nil then return "" end
  if format == "%%" then return ("%.1f%%"):format(100 * value) end
  local text = format and format:format(value) or tostring(value)
  return (text:gsub("|", "\\|"))
end

local function is_number(rows, column)
  for _, row in ipairs(rows) do
    if type(row[column[2]]) ~= "number" then return false end
  end
  return true
end

local function line(cells)
  return "| " .. table.concat(cells, " | ") .. " |"
end

---Numbers stand to the right.
---@param columns report.column[]
---@param rows table<string, any>[]
---@return string markdown
function report.table(columns, rows)
  local headings, rules = {}, {}
  for i, column in ipairs(columns) do
    headings[i] = column[1]
    rules[i] = is_number(rows, column) and "---:" or "---"
  end
  local lines = { line(headings), "|" .. table.concat(rules, "|") .. "|" }
  for _, row in ipairs(rows) do
    local cells = {}
    for i, column in ipairs(columns) do cells[i] = cell(row, column) end
    lines[#lines + 1] = line(cells)
  end
  return table.concat(lines, "\n")
end

---@param items string[]
---@return string markdown
function report.list(items)
  local lines = {}
  for i, item in ipairs(items) do lines[i] = "- " .. item end
  return table.concat(lines, "\n")
end

return report
