--- Where an editor finds nclua's annotations: beside an installed program, in the source
--- tree of a built one, else in a folder that is written for it.
local editor = {}

local cjson = require("cjson")
local files = require("nclua.files")
local lfs = require("lfs")
local sources = require("nclua.sources")

---Writes files below a folder.
---@param folder string
---@param list sources.file[]
---@return boolean? ok
---@return string? message
---@return string? code
function editor.write(folder, list)
  for _, file in ipairs(list) do
    local path = folder .. "/" .. file.path
    local ok, message, code = files.make_folder(files.folder(path))
    if ok then ok, message, code = files.write(path, file.text) end
    if not ok then return nil, message, code end
  end
  return true
end

-- Of bin/nclua and build/nclua.
local function beside_program()
  local program = lfs.symlinkattributes("/proc/self/exe", "target")
  if not program then return nil end
  local prefix = files.folder(files.folder(program))
  for _, folder in ipairs({ prefix .. "/share/nclua", prefix .. "/lib" }) do
    if files.exists(folder .. "/meta/nccl.lua") then return folder end
  end
end

local FOLDER = ".nclua"

---@param folder string of the script
---@return string? folder with meta/ and nclua/ in it
---@return string? message
function editor.stubs(folder)
  local found = beside_program()
  if found then return found end
  local ok, message = editor.write(folder .. "/" .. FOLDER, sources.stubs())
  if not ok then return nil, message end
  return FOLDER
end

local function quote(text)
  return (cjson.encode(text):gsub("\\/", "/")) -- which need no escape, and are to be read
end

---The text of a .luarc.json.
---@param stubs string folder
---@return string
function editor.settings(stubs)
  return ('{\n  "runtime.version": "Lua 5.4",\n  "runtime.path": ["?.lua", %s],\n'
    .. '  "workspace.library": [%s]\n}\n'):format(quote(stubs .. "/?.lua"), quote(stubs))
end

return editor
