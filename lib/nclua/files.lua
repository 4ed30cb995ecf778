--- Whole files: written under a temporary name and then renamed, so that a reader, or what
--- is left after a crash, never sees half of one.
local files = {}

local lfs = require("lfs")

---@param path string
---@return string? text
---@return string? message
---@return string? code
function files.read(path)
  local file <close>, message = io.open(path, "rb")
  if not file then return nil, message, "ENOENT" end
  local text, why = file:read("a")
  if not text then return nil, ("%s: %s"):format(path, why), "EIO" end
  return text
end

---@param path string
---@return boolean
function files.exists(path)
  return lfs.attributes(path, "mode") ~= nil
end

---Everything before the last slash; "." if there is none.
---@param path string
---@return string
function files.folder(path)
  return path:match("^(.*[^/])/+[^/]*$") or (path:find("^/") and "/") or "."
end

---Makes a folder and those above it.
---@param path string
---@return boolean? ok
---@return string? message
---@return string? code "EEXIST" if a file stands in the way, else "EIO"
function files.make_folder(path)
  local mode = lfs.attributes(path, "mode")
  if mode == "directory" then return true end
  if mode then return nil, ("%s: not a folder"):format(path), "EEXIST" end
  local ok, message, code = files.make_folder(files.folder(path))
  if not ok then return nil, message, code end
  ok, message = lfs.mkdir(path)
  if ok or lfs.attributes(path, "mode") == "directory" then return true end
  return nil, ("%s: %s"):format(path, message), "EIO"
end

-- Buffered data may fail as late as close, on a full disk.
local function write_all(path, text)
  local file, message = io.open(path, "wb")
  if not file then return nil, message end
  local ok, why = file:write(text)
  local closed, why_not = file:close()
  if ok and closed then return true end
  return nil, ("%s: %s"):format(path, why or why_not)
end

---A name beside `path` that belongs to nobody else. No reader looks for it.
---@param path string
---@return string
function files.temporary(path)
  local folder, name = path:match("^(.*/)([^/]*)$")
  return ("%s.%s.%08x.part"):format(folder or "", name or path, math.random(0, 0xffffffff))
end

---Moves a finished temporary file to its name, or removes it if that fails.
---@param temporary string
---@param path string
---@return boolean? ok
---@return string? message
---@return string? code "EIO"
function files.rename(temporary, path)
  local ok, message = os.rename(temporary, path)
  if ok then return true end
  os.remove(temporary)
  return nil, ("%s: %s"):format(path, message), "EIO"
end

---@param path string replaced if it exists
---@param text string
---@return boolean? ok
---@return string? message
---@return string? code "EIO"
function files.write(path, text)
  local temporary = files.temporary(path)
  local ok, message = write_all(temporary, text)
  if ok then return files.rename(temporary, path) end
  os.remove(temporary)
  return nil, message, "EIO"
end

-- Depth first and by name, so that two listings of one folder are equal.
local function list(root, prefix, found)
  local names = {}
  for name in lfs.dir(prefix == "" and root or root .. "/" .. prefix) do
    if name ~= "." and name ~= ".." then names[#names + 1] = name end
  end
  table.sort(names)
  for _, name in ipairs(names) do
    local path = prefix == "" and name or prefix .. "/" .. name
    if lfs.symlinkattributes(root .. "/" .. path, "mode") == "directory" then
      list(root, path, found)
    else
      found[#found + 1] = path
    end
  end
  return found
end

---All files below a folder, by their paths from it, in a fixed order.
---@param root string
---@return string[] paths
function files.list(root)
  return list(root, "", {})
end

return files
