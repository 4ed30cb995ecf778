--- CSV of our own: what the tuner plugin observes (NCLUA_TUNER_OBSERVE).
local csv_text = require("nclua.csv")
local document = require("nclua.read.document")

local csv = {}

local HEADER = "collective,bytes,ranks,nodes,ops,registered,channels,outcome,algorithm,"
  .. "protocol"
local BEFORE_COSTS, PROTOCOLS = 10, 3

---@param head string
---@return boolean
function csv.is_one(head) return head:sub(1, #HEADER) == HEADER end

-- No field holds a comma.
local function split(line)
  local fields = {}
  for field in (line .. ","):gmatch("([^,]*),") do fields[#fields + 1] = field end
  return fields
end

-- The header is as wide as the newest algorithm: older libraries fill less of it. Any other
-- width means that the process was killed in the middle of the line.
local function is_whole(fields, columns)
  local costs = #fields - BEFORE_COSTS
  return #fields <= #columns and costs >= 0 and costs % PROTOCOLS == 0
end

-- A training job makes the same calls over and over: each once, with how often.
local function add_call(self, line, fields)
  local known = self.by_line[line]
  if known then
    known.times = known.times + 1
    return
  end
  local row = { times = 1 }
  for i, field in ipairs(fields) do row[self.columns[i]] = csv_text.value(field) end
  self.by_line[line] = row
  table.insert(self.rows, row)
end

local function take_line(self, doc, line, number)
  local lost = line:match("^# (%d+) calls lost here")
  if lost then
    local count = math.tointeger(lost) or 1
    doc:problem("calls that the plugin had no room for", line, number, count)
    return
  end
  local fields = split(line)
  if not is_whole(fields, self.columns) then
    doc:problem("a line that was cut", line:sub(1, 240), number)
    return
  end
  self.calls = self.calls + 1
  add_call(self, line, fields)
end

---@param source table
---@return nclua.read.document? document
---@return string? message
function csv.read(source)
  local text, message = source.all()
  if not text then return nil, message end
  local doc = document.new("tuner observations")
  local self = { rows = {}, by_line = {}, calls = 0 }
  local number = 0
  for line in text:gmatch("([^\r\n]*)\r?\n?") do
    number = number + 1
    if number == 1 then
      self.columns = split(line)
    elseif line ~= "" then
      take_line(self, doc, line, number)
    end
  end
  doc:fact("calls", self.calls)
  doc:fact("distinct calls", #self.rows)
  table.insert(self.columns, BEFORE_COSTS + 1, "times")
  doc:table("calls", self.columns, self.rows)
  return doc
end

return csv
