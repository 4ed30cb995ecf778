--- Text that does not belong: launcher prefixes in front of lines, and NCCL log lines or
--- function traces that landed inside other lines because they share one stream.
local foreign = {}

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
  for _, pattern in ipairs(PREFIXES) do
    local _, last, rank = line:find(pattern)
    if last then return line:sub(last + 1), math.tointeger(rank) end
  end
  return line
end

local LEVELS = { INFO = true, WARN = true, TRACE = true, CALL = true }

-- The host of a log line begins where the text before it ends: after white space, or, if a
-- row ran into it, after the number that the row ended with.
local function host_start(line, first, hosts)
  local token = line:match("^%S+", first)
  for host in pairs(hosts) do
    local at = token:find(host .. ":", 1, true)
    if at then return first + at - 1 end
  end
  local number = token:match("^%-?%d+%.?%d*") or token:match("^N/A")
  local rest = number and token:sub(#number + 1)
  if rest and rest:match("^%a") then return first + #number end
  return first
end

--- Where an NCCL log line begins inside a line, if one does.
---@param line string
---@param hosts table<string, boolean> host names seen so far; extended
---@return integer? position
function foreign.find_log(line, hosts)
  local from = 1
  while true do
    local first, last, host = line:find("([%w._-]+):%d+:%d+ %[%-?%d+%] ", from)
    if not first then return nil end
    local level = line:match("^NCCL (%u+)", last + 1)
      or line:match("^[%w_]+, %d+ NCCL (%u+)", last + 1)
      or line:match("^%S+:%d+ NCCL (%u+)", last + 1)
    if LEVELS[level] then
      local start = host_start(line, first, hosts)
      if start == 1 then hosts[host] = true end
      return start
    end
    from = last + 1
  end
end

--- Where a function trace ("TimeTest(), common.cu:610, ") stands; patched programs print it
--- in front of every piece of a line.
---@param line string
---@return integer? first
---@return integer? last
function foreign.find_trace(line)
  return line:find("[%a_][%w_]*%(%), [%w_.]+:%d+, ?")
end

return foreign
