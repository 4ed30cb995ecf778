--- nclua unpack FILE DIR: a packed run as a folder again, if nothing was changed.
local archive = require("nclua.archive")
local command = require("nclua.command")

local opt = command.options("nclua unpack",
  "A packed run as a folder again. Every name and checksum is checked before anything is\n"
    .. "written; the folder must not exist.",
  { { "names", "", "the packed file, and the folder", positional = "+" } }, arg)
if #opt.names ~= 2 then
  io.stderr:write("nclua unpack: expected FILE DIR (try --help)\n")
  os.exit(2)
end
local file, folder = opt.names[1], opt.names[2]:gsub("(.)/+$", "%1")
local count, problems = archive.extract(file, folder)
if not count then
  for _, problem in ipairs(problems) do io.stderr:write("nclua unpack: ", problem, "\n") end
  os.exit(1)
end
print(("%s: %d files"):format(folder, count))
