--- Reads the text that nccl-tests print: every version, every binary, several tables in one
--- stream, rows cut by log lines. Column labels decide, never a column count. Pure: no I/O.
local foreign = require("nclua.parse.foreign")

local nccl_tests = {}

---@class nclua.nccl_tests.half one placement of a row
---@field time_us number? per operation; wall time, or the caller's under -C (then cputime)
---@field cputime_us number?
---@field algbw_gbps number? 1e9 bytes a second
---@field busbw_gbps number?
---@field wrong number? mismatching elements; nil where the row says N/A (not checked)
---@field error number? up to 2.11: largest absolute difference
---@field min_us number? with -I; likewise max_us, p99_us, cv_percent

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
---@field line integer where the row began
---@field tokens string[] as printed, pieces joined

---@class nclua.nccl_tests.run one table
---@field program string? "all_reduce_perf"
---@field collective string? "all_reduce", from the program's name
---@field ranks integer? one more than the highest rank listed
---@field version string? of nccl-tests
---@field library integer? 22803
---@field headers integer?
---@field config table<string, integer|string> what the parameter line says
---@field env string? a "## env:" note in front of the table
---@field devices table[] rank, group, pid, host, device, bus_id, name
---@field labels string[] the column labels
---@field rows nclua.nccl_tests.row[]
---@field out_of_bounds integer? failed checks
---@field status string? "OK" or "FAILED"
---@field average_busbw_gbps number?
---@field failures string[] lines that say what went wrong
---@field complete boolean the closing lines were seen

local TYPES = {}
for name in ("int8 uint8 int32 uint32 int64 uint64 half float double bfloat16 char int " ..
  "f8e4m3 f8e5m2 fp8_e4m3 fp8_e5m2 float8_e4m3 float8_e5m2"):gmatch("%S+") do
  TYPES[name] = true
end

local FAILURES = {
  "Test %u+ failure", "Test Cuda failure", "Cuda failure", "NCCL failure",
  "Test failure", "Test timeout", "Invalid number of GPUs", "^invalid type",
  "^invalid op", "^invalid option", "is not a power of 2, skipping",
}

local HALF_FIELDS = {
  time = "time_us", cputime = "cputime_us", algbw = "algbw_gbps", busbw = "busbw_gbps",
  ["#wrong"] = "wrong", error = "error", res = "error", i_min = "min_us", i_max = "max_us",
  i_p99 = "p99_us", ["i_cv%"] = "cv_percent",
}

local function split(text)
  local words = {}
  for word in text:gmatch("%S+") do words[#words + 1] = word end
  return words
end

-- "1.5", "N/A", "nan", "-nan", "inf", "1e+07": a value of a block, as a number where it is.
local function value_of(word)
  if word == "N/A" then return nil, true end
  local special = word:lower()
  if special == "inf" then return math.huge, true end
  if special:match("^%-?nan$") then return 0 / 0, true end
  local number = tonumber(word)
  return number, number ~= nil
end

local function is_value(word)
  local _, ok = value_of(word)
  return ok
end

-- With -S a row ends with the date and the time.
local function is_timestamp(words, at)
  local date, time = words[at], words[at + 1]
  return date and time and date:match("^%d%d%d%d%-%d%d%-%d%d$") ~= nil
    and time:match("^%d%d:%d%d:%d%d$") ~= nil
end

local function new_run()
  return {
    config = {}, devices = {}, rows = {}, labels = {}, failures = {}, complete = false,
  }
end

local Parser = {}
Parser.__index = Parser

function Parser:warn(why, text)
  self.warnings[#self.warnings + 1] = { line = self.line_number, why = why, text = text }
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

-- Labels name the columns: how many stand before the first block, and a block's fields.
local function layout_of(labels)
  local layout = { before = 0, fields = {}, is_milliseconds = labels[1] == "bytes" }
  local first
  for i, label in ipairs(labels) do
    if label == "time" or label == "cputime" then
      if first then break end
      first = i
      layout.before = i - 1
    end
    if first and HALF_FIELDS[label] then
      layout.fields[#layout.fields + 1] = HALF_FIELDS[label]
    end
    if label == "root" then layout.has_root = true end
  end
  return layout
end

local function half_of(words, first, layout)
  local half = {}
  for i, field in ipairs(layout.fields) do
    local word = words[first + i - 1]
    if word then half[field] = value_of(word) end
  end
  if layout.is_milliseconds and half.time_us then half.time_us = half.time_us * 1000 end
  return half
end

-- Rows of one (type, op, root) run through the sizes upwards; a step back is a new cycle.
-- Tiny sizes may repeat within a cycle because they round to the same bytes.
function Parser:cycle_of(row)
  local last = self.run.rows[#self.run.rows]
  local is_same = last and last.type == row.type and last.redop == row.redop
  if not is_same or last.root ~= row.root then return 0 end
  if row.size_bytes > last.size_bytes then return last.cycle end
  local config = self.run.config
  local rounds = row.size_bytes < 16 * math.max(1, #self.run.devices)
  local is_single = config.min_bytes and config.min_bytes == config.max_bytes
  local repeats = row.size_bytes == last.size_bytes and rounds and not is_single
  return repeats and last.cycle or last.cycle + 1
end

-- What stands between type and the blocks: redop is a word, root a number; either may be
-- blank although it has a column.
local function read_preamble(words, layout)
  local at, redop, root = 4, nil, nil
  if words[at] and not is_value(words[at]) then
    redop = words[at]
    at = at + 1
  end
  if layout.has_root and words[at] and words[at]:match("^%-?%d+$") then
    root = math.tointeger(tonumber(words[at]))
    at = at + 1
  end
  return redop, root, at
end

function Parser:finish_row()
  local open = self.open
  if not open then return end
  self.open = nil
  local words, layout = open.words, self.layout
  local timestamp
  if is_timestamp(words, #words - 1) then
    timestamp = words[#words - 1] .. " " .. words[#words]
  end
  local redop, root, at = read_preamble(words, layout)
  local row = {
    size_bytes = math.tointeger(tonumber(words[1])),
    count = math.tointeger(tonumber(words[2])),
    type = words[3], redop = redop, root = root, line = open.line, tokens = words,
    timestamp = timestamp,
  }
  local left = #words - at + 1 - (timestamp and 2 or 0)
  local block = #layout.fields
  if left ~= block and left ~= 2 * block then
    self:warn(("a row with %d values where %d or %d were expected"):format(left, block,
      2 * block), table.concat(words, " "))
  end
  if left <= 0 then return end
  row.out_of_place = half_of(words, at, layout)
  if left >= 2 * block then row.in_place = half_of(words, at + block, layout) end
  row.cycle = self:cycle_of(row)
  self.run.rows[#self.run.rows + 1] = row
end

local function is_row_head(words)
  return TYPES[words[3]] and words[1]:match("^%d+$") and words[2]:match("^%d+$")
end

local function all_values(words)
  local n = #words
  if is_timestamp(words, n - 1) then n = n - 2 end
  for i = 1, n do
    if not is_value(words[i]) then return false end
  end
  return #words > 0
end

-- Rows, and the tails of rows that something cut.
function Parser:take_values(text)
  local words = split(text)
  if is_row_head(words) then
    self:finish_row()
    if not self.layout then
      self:warn("a row before any column labels", text)
      return true
    end
    self.open = { words = words, line = self.line_number }
    return true
  end
  if not self.open or not all_values(words) then return false end
  if #self.open.words + #words > self.most_words then
    self:warn("numbers that belong to no row", text)
    return true
  end
  table.move(words, 1, #words, #self.open.words + 1, self.open.words)
  return true
end

local function take_labels(self, body)
  local is_labels = body:match("^size%s+count%s+type") or body:match("^bytes%s+N%s+type")
  if not is_labels then return end
  local run = self:fresh_run(function(r) return #r.labels > 0 end)
  run.labels = split(body)
  self.layout = layout_of(run.labels)
  self.most_words = 7 + 2 * #self.layout.fields -- preamble, two blocks, date and time
  return true
end

local function take_version(self, body)
  local version, rest = body:match("^nccl%-tests version (%S+)(.*)")
  if not version then return end
  local run = self:fresh_run(function(r) return r.version or #r.labels > 0 end)
  run.version = version
  run.headers = math.tointeger(rest:match("nccl%-headers=(%d+)"))
  run.library = math.tointeger(rest:match("nccl%-library=(%d+)"))
  return true
end

local function take_start(self, body)
  local program = body:match("^Collective test starting: (%S+)")
  if not program then return end
  self:fresh_run(function(r) return r.program or #r.labels > 0 end).program = program
  return true
end

local CONFIG = {
  nThread = "threads", nGpus = "gpus", minBytes = "min_bytes", maxBytes = "max_bytes",
}

local function take_config(self, body)
  if not body:match("^nThreads? ?:?%s*%d+ nGpus") then return end
  local run = self:fresh_run(function(r) return next(r.config) or #r.labels > 0 end)
  for name, number in body:gmatch("(%a+)s?:? (%d+)") do
    if CONFIG[name] then run.config[CONFIG[name]] = math.tointeger(number) end
  end
  local step, kind = body:match("step: (%d+)%((%a+)%)")
  if step then run.config["step_" .. kind] = math.tointeger(step) end
  run.config.warmup_iters = math.tointeger(body:match("warmup iters: (%d+)"))
  run.config.iters = math.tointeger(body:match("%d iters: (%d+)"))
  run.config.agg_iters = math.tointeger(body:match("agg iters: (%d+)"))
  run.config.validation = math.tointeger(body:match("validation: (%d+)"))
  run.config.graph = math.tointeger(body:match("graph: (%d+)"))
  return true
end

local function take_device(self, body)
  local rank, rest = body:match("^Rank%s+(%d+)%s+(.*)")
  if not rank then return end
  local host, device, bus_id, name =
    rest:match("on%s+(%S+)%s+device%s+(%d+)%s+%[(%S-)%]%s*(.*)")
  if not host then return end
  if rank == "0" and #self.run.devices > 0 and #self.run.rows == 0 then
    self:warn("rank 0 twice: a binary built without MPI under mpirun?", body)
  end
  table.insert(self.run.devices, {
    rank = math.tointeger(rank), group = math.tointeger(rest:match("Group%s+(%d+)")),
    pid = math.tointeger(rest:match("Pid%s+(%d+)")), host = host,
    device = math.tointeger(device), bus_id = bus_id, name = name,
  })
  return true
end

local function take_footer(self, body)
  local count, status = body:match("^Out of bounds values%s*:%s*(%d+)%s*(%a*)")
  local average = body:match("^Avg bus bandwidth%s*:%s*(%S+)")
  local concluded = body:match("^Collective test concluded:")
  if not (count or average or concluded) then return end
  self:finish_row()
  if count then
    self.run.out_of_bounds = math.tointeger(count)
    self.run.status = status ~= "" and status or nil
  end
  if average then
    self.run.average_busbw_gbps = value_of(average)
    self.run.complete = #self.run.rows > 0
  end
  return true
end

local function take_note(self, body)
  local env = body:match("^#%s*env:%s*(.-)%s*$") or body:match("^env:%s*(.-)%s*$")
  if env then
    local run = self:fresh_run(function(r) return #r.labels > 0 or r.env end)
    run.env = env:find("=", 1, true) and env or ""
    return true
  end
  local bytes = body:match("^Reducing maxBytes to (%d+)")
  if bytes then
    self.run.config.clamped_max_bytes = math.tointeger(bytes)
    return true
  end
end

local TAKERS = {
  take_version, take_start, take_config, take_device, take_labels, take_footer, take_note,
}

-- What may follow a "#" and says nothing that a record holds.
local function is_decoration(body)
  return body == "" or body:match("^Using devices") or body:match("^%(B%)")
    or body:match("^out%-of%-place") or body:match("^Blocking Enabled")
    or body:match("^Per%-Iteration Report") or body:match("^Parallel Init Enabled")
    or body:match("^GPU memory usage") or body:match("^Writing JSON output")
    or body:match("^skipping json output") or body:match("^error:")
    or body:match("^NCCL Tests compiled with") or body:match("^NCCL_TESTS_")
    or body:match("^rank=") or body:match("^```") or body:match("^{}$")
end

function Parser:take_text(text)
  if text:match("^%s*$") then return end
  if self:take_values(text) then return end
  local is_comment = text:match("^%s*#") ~= nil
  local body = text:gsub("^%s*#?%s*", "", 1):gsub("%s+$", "")
  for _, take in ipairs(TAKERS) do
    if take(self, body) then return end
  end
  for _, pattern in ipairs(FAILURES) do
    if body:match(pattern) then
      table.insert(self.run.failures, body)
      return
    end
  end
  if is_decoration(body) then return end
  if is_comment or self.open then self:warn("a line that was not understood", text) end
end

--- Feeds one line, without its newline.
---@param line string
function Parser:line(line)
  self.line_number = self.line_number + 1
  local text, rank = foreign.strip_launcher(line:gsub("\r$", ""))
  if rank and rank ~= 0 then return end -- only rank 0's stream carries the table
  local log = foreign.find_log(text, self.hosts)
  if log then
    self.log_lines = self.log_lines + 1
    text = text:sub(1, log - 1)
  end
  local first, last = foreign.find_trace(text)
  while first do
    text = text:sub(1, first - 1) .. " " .. text:sub(last + 1)
    first, last = foreign.find_trace(text)
  end
  self:take_text(text)
end

local function complete_run(run)
  if run.program then run.collective = run.program:gsub("_perf.*", "") end
  for _, device in ipairs(run.devices) do
    run.ranks = math.max(run.ranks or 0, device.rank + 1)
  end
  return run
end

--- Ends the input.
---@return { runs: nclua.nccl_tests.run[], warnings: table[], log_lines: integer }
function Parser:finish()
  self:finish_row()
  local runs = {}
  for _, run in ipairs(self.runs) do
    if #run.labels > 0 or run.version or run.program or #run.failures > 0 then
      runs[#runs + 1] = complete_run(run)
    end
  end
  return { runs = runs, warnings = self.warnings, log_lines = self.log_lines }
end

--- A parser to be fed line by line.
function nccl_tests.parser()
  local run = new_run()
  return setmetatable({
    runs = { run }, run = run, warnings = {}, hosts = {}, line_number = 0, log_lines = 0,
    most_words = 0,
  }, Parser)
end

--- Reads a whole text.
---@param text string
---@return { runs: nclua.nccl_tests.run[], warnings: table[], log_lines: integer }
function nccl_tests.parse(text)
  local parser = nccl_tests.parser()
  for line in text:gmatch("([^\n]*)\n?") do parser:line(line) end
  return parser:finish()
end

return nccl_tests
