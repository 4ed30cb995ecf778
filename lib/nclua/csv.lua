--- Tables as CSV, quoted as RFC 4180 says. Lines end in LF, as every Unix tool expects; the
--- reader takes CRLF too. Numbers survive: 17 digits where fewer would lose a bit.
local csv = {}

local files = require("nclua.files")

local NONFINITE = { ["inf"] = math.huge, ["-inf"] = -math.huge, ["nan"] = 0 / 0 }
local WORDS = { ["true"] = true, ["false"] = false }

---A number as text that reads back as the same number.
---@param x number
---@return string
function csv.number(x)
  if math.type(x) == "integer" then return ("%d"):format(x) end
  if x ~= x then return "nan" end -- the C library writes a sign as well
  local short = ("%.15g"):format(x)
  return tonumber(short) == x and short or ("%.17g"):format(x)
end

local function field(value)
  if value == nil then return "" end
  local text = type(value) == "number" and csv.number(value) or tostring(value)
  if not text:find('[",\r\n]') then return text end
  return '"' .. text:gsub('"', '""') .. '"'
end

local function line(values, count)
  local fields = {}
  for i = 1, count do fields[i] = field(values[i]) end
  return table.concat(fields, ",")
end

---@param columns string[]
---@param rows table<string, any>[] nil becomes an empty field
---@return string text
function csv.encode(columns, rows)
  local lines = { line(columns, #columns) }
  for i, row in ipairs(rows) do
    local values = {}
    for c, column in ipairs(columns) do values[c] = row[column] end
    lines[i + 1] = line(values, #columns)
  end
  return table.concat(lines, "\n") .. "\n"
end

---Writes the whole table under a temporary name, then renames it. An empty one is refused:
---a table without rows is a measurement that did not happen.
---@param path string
---@param columns string[]
---@param rows table<string, any>[]
---@return boolean? ok
---@return string? message
---@return string? code "EMPTY", or an errno name
function csv.write(path, columns, rows)
  if #rows == 0 then return nil, "refusing to write empty CSV: " .. path, "EMPTY" end
  return files.write(path, csv.encode(columns, rows))
end

-- One field that begins at `at`: its text, and where its separator is.
local function quoted(text, at)
  local pieces, from = {}, at + 1
  while true do
    local quote = text:find('"', from, true)
    if not quote then return nil end
    pieces[#pieces + 1] = text:sub(from, quote - 1)
    from = quote + 2
    if text:sub(quote + 1, quote + 1) ~= '"' then break end
  end
  return table.concat(pieces, '"'), from - 1
end

local function next_field(text, at)
  if text:sub(at, at) == '"' then return quoted(text, at) end
  local stop = text:find("[,\r\n]", at) or #text + 1
  return text:sub(at, stop - 1), stop
end

local function next_record(text, at)
  local fields = {}
  while true do
    local value, stop = next_field(text, at)
    if not value then return nil, "a quoted field never ends" end
    fields[#fields + 1] = value
    local separator = text:match("^\r?\n", stop) or text:sub(stop, stop)
    at = stop + #separator
    if separator ~= "," then
      if separator ~= "" and not separator:find("\n") then
        return nil, ("%q after a field"):format(separator)
      end
      return fields, at
    end
  end
end

---Reads a table whose first line names the columns. Every value is text.
---@param text string
---@return table<string, string>[]? rows
---@return string[]|string columns or the message
---@return string? code "EINVAL"
function csv.decode(text)
  local rows, columns, at, number = {}, nil, 1, 0
  while at <= #text do
    local fields, stop = next_record(text, at)
    number = number + 1
    columns = columns or fields
    if not fields or #fields ~= #columns then
      local why = fields and ("%d fields, expected %d"):format(#fields, #columns) or stop
      return nil, ("record %d: %s"):format(number, why), "EINVAL"
    end
    if number > 1 then
      local row = {}
      for i, name in ipairs(columns) do row[name] = fields[i] end
      rows[number - 1] = row
    end
    at = stop
  end
  return rows, columns or {}
end

---Text as the value that was written: a number, a boolean, nil for nothing, else the text.
---@param text string
---@return any
function csv.value(text)
  if text == "" then return nil end
  if WORDS[text] ~= nil then return WORDS[text] end
  if text:find("^0[xX]") then return text end
  return tonumber(text) or NONFINITE[text] or text
end

---@param path string
---@return table<string, any>[]? rows with values as they were written
---@return string[]|string columns or the message
---@return string? code
function csv.read(path)
  local text, message, code = files.read(path)
  if not text then return nil, message, code end
  local rows, columns, why = csv.decode(text)
  if not rows then return nil, ("%s: %s"):format(path, columns), why end
  for _, row in ipairs(rows) do
    for name, value in pairs(row) do row[name] = csv.value(value) end
  end
  return rows, columns
end

return csv
