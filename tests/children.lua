--- The children of a process, from Linux's list: the ranks of a chapter that runs.
local files = require("nclua.files")

---@param pid integer
---@return string[] pids
return function(pid)
  local text = files.read(("/proc/%d/task/%d/children"):format(pid, pid)) or ""
  local pids = {}
  for word in text:gmatch("%d+") do pids[#pids + 1] = word end
  return pids
end
