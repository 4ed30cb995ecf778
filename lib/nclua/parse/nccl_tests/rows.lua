--- Rows of an nccl-tests table: column labels decide what a value means, never a count, and
--- a row that something cut is joined again.
local rows = {}

local TYPES = {}
for name in ("int8 uint8 int32 uint32 int64 uint64 half float double bfloat16 char int " ..
  "f8e4m3 f8e5m2 fp8_e4m3 fp8_e5m2 float8_e4m3 float8_e5m2"):gmatch("%S+") do
  TYPES[name] = true
end

local HALF_FIELDS = {
  time = "time_us", cputime = "cputime_us", algbw = "algbw_gbps", busbw = "busbw_gbps",
  ["#wrong"] = "wrong", error = "error", res = "error", i_min = "min_us", i_max = "max_us",
  i_p99 = "p99_us", ["i_cv%"] = "cv_percent",
}

--- Words of a line.
---@param text string
---@return string[]
function rows.split(text)
  local words = {}
  for word in text:gmatch("%S+") do words[#words + 1] = word end
  return words
end

--- "1.5", "N/A", "nan", "-nan", "inf", "1e+07": a value of a block, as a number where it is
--- one; the second result says whether it is a value at all.
---@param word string
---@return number?
---@return boolean
function rows.value(word)
  if word == "N/A" then return nil, true end
  local special = word:lower()
  if special == "inf" then return math.huge, true end
  if special:match("^%-?nan$") then return 0 / 0, true end
  local number = tonumber(word)
  return number, number ~= nil
end

local function is_value(word)
  local _, ok = rows.value(word)
  return ok
end

-- With -S a row ends with the date and the time.
local function is_timestamp(words, at)
  local date, time = words[at], words[at + 1]
  return date and time and date:match("^%d%d%d%d%-%d%d%-%d%d$") ~= nil
    and time:match("^%d%d:%d%d:%d%d$") ~= nil
end

--- How many words a row may have before its first block, and a block's fields.
---@param labels string[]
function rows.layout(labels)
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
  layout.most_words = 7 + 2 * #layout.fields -- preamble, two blocks, date and time
  return layout
end

local function half_of(words, first, layout)
  local half = {}
  for i, field in ipairs(layout.fields) do
    local word = words[first + i - 1]
    if word then half[field] = rows.value(word) end
  end
  if layout.is_milliseconds and half.time_us then half.time_us = half.time_us * 1000 end
  return half
end

--- Rows of one (type, op, root) run through the sizes upwards; a step back is a new cycle.
--- Tiny sizes may repeat within a cycle because they round to the same bytes.
---@param run nclua.nccl_tests.run
---@param row nclua.nccl_tests.row
---@return integer
function rows.cycle(run, row)
  local last = run.rows[#run.rows]
  local is_same = last and last.type == row.type and last.redop == row.redop
  if not is_same or last.root ~= row.root then return 0 end
  if row.size_bytes > last.size_bytes then return last.cycle end
  local config = run.config
  local rounds = row.size_bytes < 16 * math.max(1, #run.devices)
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
    root = math.tointeger(words[at])
    at = at + 1
  end
  return redop, root, at
end

--- The row that these words make.
---@param words string[] pieces joined
---@param line integer where it began
---@return nclua.nccl_tests.row? row nil if it has no values
---@return string? problem
function rows.read(words, line, layout)
  local timestamp
  if is_timestamp(words, #words - 1) then
    timestamp = words[#words - 1] .. " " .. words[#words]
  end
  local redop, root, at = read_preamble(words, layout)
  local row = {
    size_bytes = math.tointeger(words[1]), count = math.tointeger(words[2]),
    type = words[3], redop = redop, root = root, line = line, tokens = words,
    timestamp = timestamp,
  }
  local left, block = #words - at + 1 - (timestamp and 2 or 0), #layout.fields
  local problem
  if left ~= block and left ~= 2 * block then
    problem = ("a row with %d values where %d or %d were expected"):format(left, block,
      2 * block)
  end
  if left <= 0 then return nil, problem end
  row.out_of_place = half_of(words, at, layout)
  if left >= 2 * block then row.in_place = half_of(words, at + block, layout) end
  return row, problem
end

--- Do these words begin a row: size, count, type?
---@param words string[]
---@return boolean
function rows.is_head(words)
  return TYPES[words[3]] and math.tointeger(words[1]) ~= nil
    and math.tointeger(words[2]) ~= nil and words[1]:match("^%d+$") ~= nil
end

--- Are they the values of a cut row?
---@param words string[]
---@return boolean
function rows.are_values(words)
  local n = #words
  if is_timestamp(words, n - 1) then n = n - 2 end
  for i = 1, n do
    if not is_value(words[i]) then return false end
  end
  return #words > 0
end

return rows
