--- What has been measured so far, on disk after every size: a run that was interrupted, or
--- killed, goes on from there. One JSON object a line; the first says how it was started.
local cjson = require("cjson")
local csv = require("nclua.csv")
local files = require("nclua.files")

local journal = {}

journal.FILE = "raw/journal.jsonl"

local function value(x)
  if type(x) ~= "number" then return cjson.encode(x) end
  if x ~= x or x == math.huge or x == -math.huge then return "null" end
  return csv.number(x)
end

---A flat table as one JSON object; no digit of a number is lost.
---@param row table<string, any>
---@param columns? string[] the order; default: sorted
---@return string
function journal.encode(row, columns)
  if not columns then
    columns = {}
    for name in pairs(row) do columns[#columns + 1] = name end
    table.sort(columns)
  end
  local words = {}
  for _, name in ipairs(columns) do
    if row[name] ~= nil then
      words[#words + 1] = ("%s:%s"):format(cjson.encode(name), value(row[name]))
    end
  end
  return "{" .. table.concat(words, ",") .. "}"
end

-- What is whole is an integer again, as in a CSV file.
local function restored(x)
  if x == cjson.null then return nil end
  if type(x) == "number" then return math.tointeger(x) or x end
  if type(x) ~= "table" then return x end
  local copy = {}
  for name, inner in pairs(x) do copy[name] = restored(inner) end
  return copy
end

local function decode(line)
  local ok, row = pcall(cjson.decode, line)
  return ok and type(row) == "table" and restored(row) or nil
end

---@class perf.journal
---@field file file*
local methods = {}
methods.__index = methods

---@param folder string
---@param args string[] the command line, for --resume
---@return perf.journal
function journal.create(folder, args)
  local file = assert(io.open(folder .. "/" .. journal.FILE, "w"))
  local words = {}
  for i, word in ipairs(args) do words[i] = cjson.encode(word) end
  file:write('{"arguments":[', table.concat(words, ","), "]}\n")
  file:flush()
  return setmetatable({ file = file }, methods)
end

---One case, with all its rows, at one go.
---@param case string
---@param entries { rank: integer, section: string, row: table }[]
function methods:add(case, entries)
  local lines = {}
  for i, entry in ipairs(entries) do
    lines[i] = ('{"rank":%d,"section":%s,"row":%s}\n'):format(entry.rank,
      cjson.encode(entry.section), journal.encode(entry.row))
  end
  lines[#lines + 1] = journal.encode({ done = case }) .. "\n"
  self.file:write(table.concat(lines))
  self.file:flush()
end

function methods:close()
  self.file:close()
end

---@class perf.journal.content
---@field arguments string[]
---@field cases table<string, { rank: integer, section: string, row: table }[]> by name
---@field length integer bytes of what can be read

---Reads what there is; a case without its last line does not count.
---@param folder string
---@return perf.journal.content? content
---@return string? message
function journal.read(folder)
  local text, message = files.read(folder .. "/" .. journal.FILE)
  if not text then return nil, message end
  local content, entries = { cases = {}, length = 0 }, {}
  local at = 0
  for line in text:gmatch("([^\n]*)\n") do
    at = at + #line + 1
    local row = decode(line)
    if not row then break end
    if row.section then
      entries[#entries + 1] = row
    elseif row.done then
      content.cases[row.done], entries = entries, {}
      content.length = at
    else
      content.arguments, content.length = row.arguments, at
    end
  end
  if content.arguments then return content end
  return nil, folder .. ": its journal cannot be read"
end

---Goes on writing where the last complete case ended.
---@param folder string
---@param content perf.journal.content
---@return perf.journal
function journal.continue(folder, content)
  local path = folder .. "/" .. journal.FILE
  local text = assert(files.read(path))
  assert(files.write(path, text:sub(1, content.length)))
  return setmetatable({ file = assert(io.open(path, "a")) }, methods)
end

return journal
