--- Programs on the PATH.
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

return programs
