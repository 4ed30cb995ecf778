--- nclua new FILE.lua: a chapter of one's own, that runs at once.
local command = require("nclua.command")
local editor = require("nclua.editor")
local embedded = require("nclua.embedded")
local files = require("nclua.files")

local OPTIONS = { { "file", "", "the script, such as my.lua", positional = "+" } }

local function fail(message)
  io.stderr:write("nclua new: ", message, "\n")
  os.exit(1)
end

local opt = command.options("nclua new",
  "Writes a chapter with comments, which runs at once, and settings for an editor that\n"
    .. "speaks with the Lua language server. Never overwrites a file.", OPTIONS, arg)
if #opt.file > 1 then fail("one file at a time") end
local path = opt.file[1]
local name = path:match("([%w_]+)%.lua$")
if not name then fail(("'%s': expected a name such as my.lua"):format(path)) end
if files.exists(path) then fail(("'%s' exists already"):format(path)) end
local folder = files.folder(path)
assert(files.make_folder(folder))
local text = embedded.source("template:skeleton"):gsub("NAME", name)
local ok, message = files.write(path, text)
if not ok then fail(message) end
print(("%s: run it by nclua %s"):format(path, path))

local settings = folder .. "/.luarc.json"
if files.exists(settings) then return end
local stubs, why = editor.stubs(folder)
if not stubs then fail(why) end
ok, message = files.write(settings, editor.settings(stubs))
if not ok then fail(message) end
print(settings .. ": tells an editor where the annotations are")
