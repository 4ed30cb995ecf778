--- nclua export: a chapter's source, to read and to change; or the annotations for editors.
local command = require("nclua.command")
local editor = require("nclua.editor")
local files = require("nclua.files")
local nearest = require("nclua.nearest")
local sources = require("nclua.sources")

local OPTIONS = {
  { "what", "", "chapter, and a folder for all its files", positional = "+" },
  { "stubs", false, "the annotations instead, into a folder" },
}

local function fail(message)
  io.stderr:write("nclua export: ", message, "\n")
  os.exit(1)
end

local function write(folder, list)
  for _, file in ipairs(list) do
    local path = folder .. "/" .. file.path
    if files.exists(path) then fail(("'%s' exists already"):format(path)) end
  end
  local ok, message = editor.write(folder, list)
  if not ok then fail(message) end
  for _, file in ipairs(list) do print(folder .. "/" .. file.path) end
end

local function print_main(name, list)
  io.write(list[1].text)
  if #list == 1 then return end
  local names = {}
  for i = 2, #list do names[i - 1] = list[i].path end
  local text = "nclua export: %s has more files, which nclua finds in the binary as long "
    .. "as there are none beside it:\n  %s\n`nclua export %s DIR` writes all.\n"
  io.stderr:write(text:format(name, table.concat(names, "\n  "), name))
end

local opt = command.options("nclua export",
  "nclua export CHAPTER prints its source, nclua export CHAPTER DIR writes all its files,\n"
    .. "nclua export --stubs DIR writes what an editor wants to know. Never overwrites.",
  OPTIONS, arg)
local name, folder = opt.what[1], opt.what[2]
if #opt.what > (opt.stubs and 1 or 2) then fail("too many arguments (try --help)") end
if opt.stubs then return write(name, sources.stubs()) end
local list = sources.chapter(name)
if not list then
  local near = nearest.of(name, sources.chapters())
  fail(("no chapter '%s'%s; see nclua chapters"):format(name,
    near and ", the nearest is " .. near or ""))
end
if folder then write(folder, list) else print_main(name, list) end
