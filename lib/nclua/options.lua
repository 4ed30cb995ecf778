--- Options said once: a row gives the name, the default, the help; the default gives the
--- type. argparse reads the command line, the manifest lists what was used.
---
---   { "cycles", 10, "measured cycles of every case", min = 1 }
---   { "largest", "64M", "largest message", kind = "size" }
---   { "sections", "all", "sections to run", kind = "list", choices = { "decode" } }
local options = {}

local argparse = require("argparse")
local size = require("nclua.size")

---@class options.row
---@field [1] string name; "run_id" is --run-id
---@field [2] string|number|boolean default; false makes a flag; "auto" needs no conversion
---@field [3] string help
---@field kind? "size"|"integer"|"list"|"integers" what a text means
---@field min? number
---@field oversubscribed? any what a chapter takes instead where ranks share devices
---@field choices? string[] the words allowed
---@field positional? "+"|"*"|"?" no option but arguments: at least one, any number, at most
---one; the value is a list
---@field alias? string more names, as they are written: "-b --min_bytes"

---@class options.result
---@field values table<string, any> by name; a list kind is a table
---@field texts { [1]: string, [2]: string }[] name and text of every option, in order
---@field given table<string, boolean> was it on the command line?
---@field help? string set if --help was given: then there is nothing else

local function integer(text)
  local value = math.tointeger(text)
  if value then return value end
  return nil, ("expected an integer, got '%s'"):format(text)
end

local function number(text)
  local value = tonumber(text)
  if value then return value end
  return nil, ("expected a number, got '%s'"):format(text)
end

local function list(text)
  local words = {}
  for word in text:gmatch("[^,%s]+") do words[#words + 1] = word end
  return words
end

local function integers(text)
  local values = list(text)
  for i, word in ipairs(values) do
    local value, message = integer(word)
    if not value then return nil, message end
    values[i] = value
  end
  return values
end

local function text_itself(text)
  return text
end

local READERS = { size = size.parse, integer = integer, list = list, integers = integers }
local BY_TYPE = { integer = integer, float = number }

local function reader(row)
  return READERS[row.kind] or BY_TYPE[math.type(row[2])] or text_itself
end

local function check_choices(row, value)
  local allowed = {}
  for _, word in ipairs(row.choices) do allowed[word] = true end
  for _, word in ipairs(type(value) == "table" and value or { value }) do
    if not allowed[word] then
      return ("unknown '%s': expected %s"):format(word, table.concat(row.choices, ", "))
    end
  end
end

local function convert(row, text)
  local value, message = reader(row)(text)
  if value == nil then return nil, message end
  if row.min and value < row.min then
    message = ("expected at least %s, got %s"):format(row.min, text)
  elseif row.choices and text ~= row[2] then
    message = check_choices(row, value)
  end
  if message then return nil, message end
  return value
end

local function flag_of(name)
  return "--" .. name:gsub("_", "-")
end

-- argparse takes the first long name as the key: --run-id gives run_id.
local function names_of(row)
  return row.alias and flag_of(row[1]) .. " " .. row.alias or flag_of(row[1])
end

local function add(parser, row)
  local name, default, help = row[1], row[2], row[3]
  if row.positional then
    parser:argument(name, help):args("*") -- --help needs none of them
    return
  end
  if default == false then
    parser:flag(names_of(row), help):target(name)
    return
  end
  if default ~= "" then help = ("%s (default: %s)"):format(help, default) end
  parser:option(names_of(row), help):argname("<" .. name .. ">"):target(name)
end

local function new_parser(name, description, rows)
  local parser = argparse(name, description)
  parser:add_help(false)
  parser:help_max_width(88)
  for _, row in ipairs(rows) do add(parser, row) end
  parser:flag("-h --help", "print this and exit")
  return parser
end

local function positional_of(row, given)
  if row.positional == "+" and #given == 0 then
    return nil, ("missing argument: %s"):format(row[1])
  end
  if row.positional == "?" and #given > 1 then
    return nil, ("unexpected argument: %s"):format(given[2])
  end
  return given, table.concat(given, " ")
end

local function value_of(row, given)
  if row.positional then
    return positional_of(row, given or {})
  end
  if row[2] == false then return given or false, tostring(given or false) end
  local text = tostring(given or row[2])
  if text == "auto" and row[2] == "auto" then return text, text end
  local value, message = convert(row, text)
  if message then return nil, ("%s: %s"):format(flag_of(row[1]), message) end
  return value, text
end

-- argparse takes a negative number for an option: "-r -1" becomes "-r-1".
local function join_negatives(rows, args)
  local takes_value, joined = {}, {}
  for _, row in ipairs(rows) do
    for name in names_of(row):gmatch("%S+") do takes_value[name] = row[2] ~= false end
  end
  for _, word in ipairs(args) do
    local last = joined[#joined]
    if last and takes_value[last] and word:find("^%-%.?%d") then
      joined[#joined] = (last:find("^%-%-") and "%s=%s" or "%s%s"):format(last, word)
    else
      joined[#joined + 1] = word
    end
  end
  return joined
end

---@param name string the program, for the usage line
---@param description string
---@param rows options.row[]
---@param args string[]
---@return options.result? result
---@return string? message one line
---@return string? code "EUSAGE"
function options.parse(name, description, rows, args)
  local parser = new_parser(name, description, rows)
  local ok, given = parser:pparse(join_negatives(rows, args))
  if not ok then return nil, (given:gsub("\n", ". ")), "EUSAGE" end
  local result = { values = {}, texts = {}, given = {} }
  if given.help then
    result.help = parser:get_help()
    return result
  end
  for i, row in ipairs(rows) do
    local value, text = value_of(row, given[row[1]])
    if value == nil then return nil, text, "EUSAGE" end
    result.values[row[1]] = value
    result.given[row[1]] = given[row[1]] ~= nil
    result.texts[i] = { row[1], text }
  end
  return result
end

---What a script says of itself: the comment lines that it begins with.
---@param source string the script's text
---@return string description
function options.header(source)
  local lines = {}
  for text in source:gsub("^#[^\n]*\n", ""):gmatch("([^\n]*)\n") do
    local comment = text:match("^%-%-%-? ?(.*)$")
    if not comment then break end
    lines[#lines + 1] = comment
  end
  return table.concat(lines, "\n")
end

return options
