--- Rows as columns of text for a terminal.
local text_table = {}

local function text_of(value, most)
  local text
  if value == nil then return "" end
  if math.type(value) == "float" then
    text = ("%.14g"):format(value)
  else
    text = tostring(value):gsub("%c", " ")
  end
  if utf8.len(text) and utf8.len(text) > most then
    text = text:sub(1, utf8.offset(text, most - 2) - 1) .. "..."
  end
  return text
end

local function width_of(text) return utf8.len(text) or #text end

local function pad(text, width, is_right)
  local space = (" "):rep(width - width_of(text))
  return is_right and space .. text or text .. space
end

---@class text_table.options
---@field most_width? integer a longer cell is cut, default 60
---@field indent? string

---Numbers stand to the right; a nil is nothing. Each line ends with a newline.
---@param columns string[]
---@param rows any[][] cells in the columns' order
---@param options? text_table.options
---@return string
function text_table.format(columns, rows, options)
  local most = options and options.most_width or 60
  local indent = options and options.indent or ""
  local widths, is_number, cells = {}, {}, { columns }
  for c, column in ipairs(columns) do widths[c], is_number[c] = width_of(column), true end
  for r, row in ipairs(rows) do
    local line = {}
    for c = 1, #columns do
      line[c] = text_of(row[c], most)
      widths[c] = math.max(widths[c], width_of(line[c]))
      if row[c] ~= nil and type(row[c]) ~= "number" then is_number[c] = false end
    end
    cells[r + 1] = line
  end
  local lines = {}
  for r, line in ipairs(cells) do
    local parts = {}
    for c = 1, #columns do parts[c] = pad(line[c], widths[c], is_number[c]) end
    lines[r] = indent .. table.concat(parts, "  "):gsub("%s+$", "") .. "\n"
  end
  return table.concat(lines)
end

return text_table
