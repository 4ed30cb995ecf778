--- Text that does not belong: launcher prefixes in front of lines, function traces inside
--- them. NCCL's own messages are cut out by nclua.logscan.
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

--- Where a function trace ("TimeTest(), common.cu:610, ") stands; patched programs print it
--- in front of every piece of a line.
---@param line string
---@return integer? first
---@return integer? last
function foreign.find_trace(line)
  return line:find("[%a_][%w_]*%(%), [%w_.]+:%d+, ?")
end

return foreign
