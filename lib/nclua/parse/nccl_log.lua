--- Reads NCCL's debug log, 2.4 to 2.30, as a stream of any size in constant memory: what
--- was initialised, by which rank, on which graphs; the printed model; what was selected
--- and run. nclua.logscan finds the messages and counts the voluminous ones. Pure: no I/O.
local communicators = require("nclua.parse.nccl_log.communicators")
local context = require("nclua.parse.nccl_log.context")
local environment = require("nclua.parse.nccl_log.environment")
local foreign = require("nclua.parse.foreign")
local graph = require("nclua.parse.nccl_log.graph")
local logscan = require("nclua.logscan")
local model_table = require("nclua.parse.nccl_log.model_table")
local selections = require("nclua.parse.nccl_log.selections")
local watchdog = require("nclua.parse.watchdog")

local nccl_log = {}

-- What is kept of what a broken or endless log may repeat for ever.
local MOST_ISSUES = 100
local MOST_WARNINGS = 256
local MOST_TEXT_BYTES = 16 << 20

-- Patterns are tried on no more than this; what may be longer is kept, not taken apart.
local MOST_MESSAGE = 4096
local IS_LONG = { text = true, trees = true, paths = true, node = true, issue = true }

---@class nclua.nccl_log.issue
---@field line integer
---@field why string
---@field text string

---@class nclua.nccl_log.result
---@field version string? NCCL's, "2.28.3"; the first one seen
---@field cuda string? that NCCL was built with; nil if the log does not say
---@field versions table<string, integer> as printed → processes that printed it
---@field driver integer? CUDA's, such as 13000
---@field ranks integer? of the largest communicator
---@field nodes integer? of that communicator
---@field is_nodes_inferred boolean? by counting hosts: the log does not say it
---@field communicators nclua.nccl_log.communicator[] largest first
---@field selections nclua.nccl_log.selection[] distinct
---@field operations logscan.record[] distinct, with how often
---@field connections logscan.record[]
---@field links logscan.record[]
---@field others logscan.record[] messages that carry nothing for us, by shape
---@field env table[] name, value, processes
---@field plugins table[] text, times, first_line
---@field warnings table[] NCCL WARN: place, text, times, first_line
---@field watchdog table torch's timeouts and pg_status
---@field hosts string[]
---@field issues nclua.nccl_log.issue[] what was cut or damaged; the first 100
---@field issue_count integer
---@field left_out table<string, integer> what there was too much of to keep it apart
---@field totals table bytes, lines, messages, topics

---@class nclua.nccl_log.options
---@field on_text? fun(text: string, line: integer, rank: integer?) what is no log message;
---rank is the launcher's
---@field on_record? fun(topic: string, record: logscan.record, line: integer) each
---operation, selection, connection and link as it comes

local Parser = {}
Parser.__index = Parser

--- Something was there that could not be read.
function Parser:issue(line, why, text)
  self.issue_count = self.issue_count + 1
  if #self.issues == MOST_ISSUES then return end
  self.issues[#self.issues + 1] = { line = line, why = why, text = text:sub(1, 240) }
end

--- The same text once in memory, until too much of it is kept: then nil.
function Parser:keep(text)
  if self.kept[text] then return text end
  if self.kept_bytes + #text > MOST_TEXT_BYTES then
    self:leave_out("details of communicators")
    return nil
  end
  self.kept[text] = true
  self.kept_bytes = self.kept_bytes + #text
  return text
end

function Parser:leave_out(what)
  self.left_out[what] = (self.left_out[what] or 0) + 1
end

local HANDLERS = {}

for _, module in ipairs({ context, environment, graph, model_table }) do
  for topic, handler in pairs(module.HANDLERS) do HANDLERS[topic] = handler end
end

function HANDLERS.issue(self, text, line, _, _, why)
  self:issue(line, why, text)
end

function HANDLERS.warn(self, text, line, thread, is_glued, place)
  if is_glued then self:issue(line, "a warning that another message ran into", text) end
  local key = place .. "\0" .. text
  local warning = self.warnings[key]
  if warning then
    warning.times = warning.times + 1
  elseif #self.warnings < MOST_WARNINGS then
    warning = { place = place, text = text:sub(1, 1000), times = 1, first_line = line,
      process = thread > 0 and self.scanner:thread(thread).process or nil }
    self.warnings[#self.warnings + 1] = warning
    self.warnings[key] = warning
  else
    self:leave_out("warnings")
  end
end

-- The rows under "Enabled NCCL Func/Proto/Algo Matrix:" carry no prefix.
local function take_matrix_row(self, text)
  local name = self.matrix and text:match("^%s*(%a+) | [%s%d%a]+ | ")
  if not name then return false end
  local cells = {}
  for word in text:gsub("^[^|]*|", ""):gmatch("[^|%s]+") do cells[#cells + 1] = word end
  self.matrix[name] = cells
  return true
end

function HANDLERS.matrix(self) self.matrix = self.matrix or {} end

function HANDLERS.text(self, text, line, thread)
  local rest, rank = foreign.strip_launcher(text)
  if rest:find("^NCCL version ") then
    HANDLERS.version(self, rest, line, thread)
  elseif not take_matrix_row(self, rest) and not watchdog.take(self.watchdog, rest, rank)
    and self.on_text then
    self.on_text(rest, line, rank)
  end
end

-- With `each`, records come too; their handler looks the record up only if asked.
for _, topic in ipairs({ "operation", "selection", "connection", "link" }) do
  HANDLERS[topic] = function(self, _, line, _, _, index)
    if index then self.on_record(topic, self.scanner:record(index), line) end
  end
end

--- Feeds a piece of the log; lines may be cut anywhere between two pieces.
---@param bytes string
function Parser:feed(bytes)
  self.scanner:feed(bytes, self.on_event)
end

local function hosts_of(contexts)
  local hosts, seen = {}, {}
  for _, one in ipairs(contexts) do
    if one.host and not seen[one.host] then
      seen[one.host] = true
      hosts[#hosts + 1] = one.host
    end
  end
  return hosts
end

local function add_overflow(self, totals)
  for topic, count in pairs(totals.overflow) do
    self.left_out[topic] = (self.left_out[topic] or 0) + count
  end
end

-- Where no line says how many nodes there are, the hosts are counted.
local function infer_nodes(result)
  local largest = result.communicators[1]
  result.ranks = largest and largest.ranks
  result.nodes = largest and largest.nodes
  if not result.nodes and #result.hosts > 0 then
    result.nodes, result.is_nodes_inferred = #result.hosts, true
  end
end

--- Ends the input. The parser is used up.
---@return nclua.nccl_log.result
function Parser:finish()
  local scanner <close> = self.scanner
  scanner:finish(self.on_event)
  local totals = scanner:totals()
  add_overflow(self, totals)
  local result = {
    version = self.version, cuda = self.cuda, versions = self.versions,
    driver = self.driver, network = self.network, env = environment.list(self),
    plugins = self.plugins, warnings = table.move(self.warnings, 1, #self.warnings, 1, {}),
    watchdog = self.watchdog, matrix = self.matrix, issues = self.issues,
    issue_count = self.issue_count, left_out = self.left_out, totals = totals,
    operations = scanner:records("operation"), links = scanner:records("link"),
    connections = scanner:records("connection"), others = scanner:records("other"),
    selections = selections.list(scanner:records("selection"), self.version),
    communicators = communicators.group(self.contexts),
    hosts = hosts_of(self.contexts),
  }
  infer_nodes(result)
  return result
end

--- A parser to be fed piece by piece.
---@param options? nclua.nccl_log.options
function nccl_log.parser(options)
  options = options or {}
  local self = setmetatable({
    scanner = logscan.new({ each = options.on_record ~= nil }),
    on_text = options.on_text, on_record = options.on_record,
    contexts = {}, threads = {}, by_comm = {}, versions = {}, version_seen = {},
    env = {}, plugins = {}, warnings = {}, watchdog = watchdog.new(), issues = {},
    issue_count = 0, left_out = {}, kept = {}, kept_bytes = 0, rows_seen = {},
  }, Parser)
  self.on_event = function(topic, text, line, thread, is_glued, extra)
    local handler = HANDLERS[topic]
    if not handler then return end
    if #text > MOST_MESSAGE and not IS_LONG[topic] then
      self:issue(line, "a message that is too long", text)
      text = text:sub(1, MOST_MESSAGE)
    end
    handler(self, text, line, thread, is_glued, extra)
  end
  return self
end

--- Reads a whole log.
---@param text string
---@param options? nclua.nccl_log.options
---@return nclua.nccl_log.result
function nccl_log.parse(text, options)
  local parser = nccl_log.parser(options)
  parser:feed(text)
  return parser:finish()
end

return nccl_log
