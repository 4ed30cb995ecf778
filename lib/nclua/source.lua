--- The text of a running script, from its file or from the binary: for checksums and help.
local source = {}

local embedded = require("nclua.embedded")
local files = require("nclua.files")

---@class source
---@field path string as the script is called in messages
---@field text string

-- A script that was started by a name that is no file came out of the binary, and so did
-- what it required, unless that is only on disk.
local function read(path)
  local is_from_disk = arg and arg[0] and files.exists(arg[0])
  if is_from_disk then
    local text = files.read(path)
    if text then return text end
  end
  for _, name in ipairs(embedded.names()) do
    local text, where = embedded.source(name)
    if where == path then return text end
  end
  return files.read(path)
end

---@param level integer of the calling function, as for debug.getinfo: 1 is who calls this
---@return source
function source.of(level)
  local path = debug.getinfo(level + 1, "S").source:match("^@(.*)$")
  return { path = path or "(command line)", text = path and read(path) or "" }
end

return source
