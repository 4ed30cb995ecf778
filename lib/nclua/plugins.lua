--- Files of nclua's own plugins. The binary carries them, so that one file is enough: NCCL
--- and CUDA load plugins by path, so they are written into the user's cache once.
local embedded = require("nclua.embedded")
local files = require("nclua.files")
local hash = require("nclua.hash")

local plugins = {}

local FILES = { tuner = "libnccl-tuner-nclua.so" }

local function cache_folder()
  local base = os.getenv("XDG_CACHE_HOME")
  if not base or base == "" then
    local home = os.getenv("HOME")
    if not home or home == "" then return nil end
    base = home .. "/.cache"
  end
  return base .. "/nclua/plugins"
end

--- The path of a plugin's file: in $NCLUA_PLUGIN_DIR if that is set, else in the cache,
--- written there if this very content is not there yet.
---@param name "tuner"
---@return string? path
---@return string? message
---@return string? code
function plugins.file(name)
  local file = FILES[name]
  if not file then error(("no plugin named '%s'"):format(name), 2) end
  local folder = os.getenv("NCLUA_PLUGIN_DIR")
  if folder then return folder .. "/" .. file end
  local content = assert(embedded.source("plugin:" .. name))
  local digest, cache = hash.sha256(content), cache_folder()
  if not cache then
    return nil, "no place for plugins: set HOME or NCLUA_PLUGIN_DIR", "ENOENT"
  end
  folder = cache .. "/" .. digest:sub(1, 16)
  local path = folder .. "/" .. file
  if hash.sha256_file(path) == digest then return path end
  local ok, message, code = files.make_folder(folder)
  if ok then ok, message, code = files.write(path, content) end
  if not ok then return nil, message, code end
  return path
end

return plugins
