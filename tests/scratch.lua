--- A folder for one test: `local folder <close> = scratch.folder()` removes it again.
local scratch = {}

local lfs = require("lfs")

local function remove(path)
  if lfs.symlinkattributes(path, "mode") ~= "directory" then return os.remove(path) end
  for name in lfs.dir(path) do
    if name ~= "." and name ~= ".." then remove(path .. "/" .. name) end
  end
  return lfs.rmdir(path)
end

function scratch.folder()
  local path = os.tmpname()
  os.remove(path)
  assert(lfs.mkdir(path))
  return setmetatable({ path = path }, { __close = function() remove(path) end })
end

return scratch
