--- Text that does not belong: launcher prefixes in front of lines, function traces inside
--- them. NCCL's own messages are cut out by nclua.logscan.
local foreign = {}

local MOST_PREFIX, MOST_NAME = 200, 80

-- Each is tried once, at the start of the line; rank where the prefix names it.
local PREFIXES = {
  "^%[%d+,(%d+)%]<%w+>:%s?", -- OpenMPI --tag-output
  "^%[[^%]]-,(%d+)%]<%w+>:%s?", -- the same with a job name
  "^%s*(%d+):%s", -- srun -l
  "^%[(%d+)%] ", -- hydra -prepend-rank
  "^%([^()]-rank=(%d+)[^()]*%)%s?", -- a task launcher that names itself
}

--- Removes a launcher's prefix.
---@param line string
---@return string rest
---@return integer? rank the launcher's rank, if there was a prefix
function foreign.strip_launcher(line)
  if not line:find("^[%[(]") and not line:find("^%s*%d+:") then return line end
  local front = line:sub(1, MOST_PREFIX)
  for _, pattern in ipairs(PREFIXES) do
    local _, last, rank = front:find(pattern)
    if last then return line:sub(last + 1), math.tointeger(rank) end
  end
  return line
end

--- Where a function trace ("TimeTest(), common.cu:610, ") stands; patched programs print it
--- in front of every piece of a line.
---@param line string
---@return integer? first
---@return integer? last
function foreign.find_trace(line)
  local from = 1
  while true do -- the name is sought backwards: a long word would be tried at every letter
    local first, last = line:find("%(%), [%w_.]+:%d+, ?", from)
    if not first then return nil end
    local before = line:sub(math.max(1, first - MOST_NAME), first - 1)
    local name = before:match("[%a_][%w_]*$")
    if name then return first - #name, last end
    from = last + 1
  end
end

--- Without white space at its ends; in linear time, whatever the text.
---@param text string
---@return string
function foreign.trim(text)
  local first = text:find("%S")
  if not first then return "" end
  local last = #text
  while text:find("^%s", last) do last = last - 1 end
  return text:sub(first, last)
end

return foreign
