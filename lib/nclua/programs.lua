--- Programs: on the PATH, and this one.
local lfs = require("lfs")

local programs = {}

--- The first file of that name in PATH's folders.
---@param name string
---@param path string? instead of $PATH
---@return string? file
function programs.find(name, path)
  if name:find("/", 1, true) then
    return lfs.attributes(name, "mode") == "file" and name or nil
  end
  for folder in (path or os.getenv("PATH") or ""):gmatch("[^:]+") do
    local file = folder .. "/" .. name
    local permissions = lfs.attributes(file, "permissions")
    if permissions and permissions:sub(3, 3) == "x"
      and lfs.attributes(file, "mode") == "file" then
      return file
    end
  end
end

--- This program's own file, to start it again.
---@return string
function programs.own()
  return assert(lfs.symlinkattributes("/proc/self/exe", "target"))
end

return programs
