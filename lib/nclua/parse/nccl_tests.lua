--- Reads what nccl-tests print: every version, every binary, several tables in one stream,
--- rows cut by log lines; and the JSON that they write. Pure: no I/O.
local foreign = require("nclua.parse.foreign")
local header = require("nclua.parse.nccl_tests.header")
local json = require("nclua.parse.nccl_tests.json")
local logscan = require("nclua.logscan")
local rows = require("nclua.parse.nccl_tests.rows")

local nccl_tests = {}

---@class nclua.nccl_tests.half one placement of a row
---@field time_us number? per operation; wall time, or the caller's under -C (then cputime)
---@field cputime_us number?
---@field algbw_gbps number? 1e9 bytes a second
---@field busbw_gbps number?
---@field wrong number? mismatching elements; nil where the row says N/A (not checked)
---@field error number? up to 2.11: largest absolute difference
---@field min_us number? with -I; likewise max_us, p99_us, cv_percent; of JSON also avg_us,
---p50_us, p95_us, stdev_us, skipped_iterations
---@field times_us number[]? JSON with -I: each iteration
---@field per_process_max_times_us number[][]? likewise

---@class nclua.nccl_tests.row
---@field size_bytes integer
---@field count integer
---@field type string
---@field redop string?
---@field root integer?
---@field cycle integer from 0
---@field out_of_place nclua.nccl_tests.half
---@field in_place nclua.nccl_tests.half?
---@field timestamp string?
---@field line integer? where the row began; nil in JSON
---@field tokens string[]? as printed, pieces joined; nil in JSON

---@class nclua.nccl_tests.run one table
---@field program string? "all_reduce_perf"
---@field collective string? "all_reduce", from the program's name, or inferred
---@field is_collective_inferred boolean?
---@field ranks integer? one more than the highest rank listed
---@field nodes integer? hosts listed, or inferred from the devices a host has
---@field is_nodes_inferred boolean?
---@field version string? of nccl-tests
---@field library integer? 22803
---@field nccl string? "2.12.12", where a line of its own says it
---@field title string? a "## ..." line in front of the table
---@field headers integer?
---@field json_version integer? of the file
---@field json_path string? where the program says it writes JSON to
---@field config table<string, integer|string> what the parameter line says
---@field env string? a "## env:" note in front of the table, or JSON's NCCL variables
---@field devices table[] rank, group, pid, host, device, bus_id, name
---@field labels string[] the column labels; empty in JSON
---@field rows nclua.nccl_tests.row[]
---@field out_of_bounds integer? failed checks
---@field status string? "OK" or "FAILED"
---@field average_busbw_gbps number?
---@field failures string[] lines that say what went wrong
---@field complete boolean the closing lines were seen

---@class nclua.nccl_tests.result
---@field runs nclua.nccl_tests.run[]
---@field warnings { line: integer, why: string, text: string }[] the first 1000
---@field ignored { count: integer, samples: { line: integer, text: string }[] } lines that
---are neither of a table nor of NCCL's log
---@field log_lines integer NCCL's messages that were cut out

local MOST_WARNINGS, MOST_SAMPLES, MOST_LINE = 1000, 20, 4096

local function new_run()
  return {
    config = {}, devices = {}, rows = {}, labels = {}, failures = {}, complete = false,
  }
end

local Parser = {}
Parser.__index = Parser

function Parser:warn(why, text)
  if #self.warnings == MOST_WARNINGS then return end
  table.insert(self.warnings, { line = self.line, why = why, text = text:sub(1, 240) })
end

-- A header line that the current table already has begins the next one.
function Parser:fresh_run(is_taken)
  self:finish_row()
  if is_taken(self.run) then
    self.run = new_run()
    self.runs[#self.runs + 1] = self.run
  end
  return self.run
end

function Parser:finish_row()
  local open = self.open
  if not open then return end
  self.open = nil
  local row, problem = rows.read(open.words, open.line, self.layout)
  if problem then self:warn(problem, table.concat(open.words, " ")) end
  if not row then return end
  row.cycle = rows.cycle(self.run, row)
  table.insert(self.run.rows, row)
end

-- Rows, and the tails of rows that something cut.
function Parser:take_values(text)
  local words = rows.split(text)
  if rows.is_head(words) then
    self:finish_row()
    if not self.layout then
      self:warn("a row before any column labels", text)
    else
      self.open = { words = words, line = self.line }
    end
    return true
  end
  if not self.open or not rows.are_values(words) then return false end
  if #self.open.words + #words > self.layout.most_words then
    self:warn("numbers that belong to no row", text)
    return true
  end
  table.move(words, 1, #words, #self.open.words + 1, self.open.words)
  return true
end

function Parser:ignore(text)
  local ignored = self.ignored
  ignored.count = ignored.count + 1
  if #ignored.samples < MOST_SAMPLES then
    table.insert(ignored.samples, { line = self.line, text = text:sub(1, 240) })
  end
end

-- Functions that patched programs print in front of every piece of a line.
local function without_traces(text)
  if not text:find("(), ", 1, true) then return text end
  local first, last = foreign.find_trace(text)
  while first do
    text = text:sub(1, first - 1) .. " " .. text:sub(last + 1)
    first, last = foreign.find_trace(text)
  end
  return text
end

--- Takes a line, or what is left of one when NCCL's messages are cut out.
---@param text string without a launcher's prefix
---@param line integer
---@param rank integer? the launcher's: only rank 0's stream carries the table
function Parser:text(text, line, rank)
  self.line = line
  if rank and rank ~= 0 then return end
  if #text > MOST_LINE then return self:ignore(text) end
  text = without_traces(text)
  if not text:find("%S") or self:take_values(text) then return end
  local is_comment = text:match("^%s*#") ~= nil
  local body = foreign.trim(text):gsub("^#%s*", "", 1)
  if header.take(self, body) then return end
  if header.is_failure(body) then
    table.insert(self.run.failures, body)
  elseif header.is_decoration(body) then
    return
  elseif is_comment or self.open then
    self:warn("a line that was not understood", text)
  else
    self:ignore(text)
  end
end

--- Ends the input.
---@return nclua.nccl_tests.result
function Parser:finish()
  self:finish_row()
  local runs = {}
  for _, run in ipairs(self.runs) do
    if #run.labels > 0 or run.version or run.program or #run.failures > 0 then
      runs[#runs + 1] = header.complete(run)
    end
  end
  return { runs = runs, warnings = self.warnings, ignored = self.ignored, log_lines = 0 }
end

--- A parser to be fed line by line, when something else cuts NCCL's messages out, as
--- nclua.parse.nccl_log does.
function nccl_tests.parser()
  local run = new_run()
  return setmetatable({
    runs = { run }, run = run, warnings = {}, line = 0,
    ignored = { count = 0, samples = {} },
  }, Parser)
end

--- Reads a whole text, messages of NCCL in it or not.
---@param text string
---@return nclua.nccl_tests.result
function nccl_tests.parse(text)
  local parser, scanner <close> = nccl_tests.parser(), logscan.new()
  local function listen(topic, piece, line)
    if topic ~= "text" then return end
    local rest, rank = foreign.strip_launcher(piece)
    parser:text(rest, line, rank)
  end
  scanner:feed(text, listen):finish(listen)
  local result = parser:finish()
  result.log_lines = scanner:totals().messages
  return result
end

--- Reads the JSON of -J (nccl-tests 2.17.3 and newer), cut or whole.
---@param text string
---@return nclua.nccl_tests.result? result
---@return string? message
---@return string? code "EINVAL"
function nccl_tests.parse_json(text)
  local run, warnings, message = json.read(text)
  if not run then return nil, message, "EINVAL" end
  return {
    runs = { header.complete(run) }, warnings = warnings, log_lines = 0,
    ignored = { count = 0, samples = {} },
  }
end

return nccl_tests
