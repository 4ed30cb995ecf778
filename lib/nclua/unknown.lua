--- What the host says of a name that is no file, chapter or command.
local nearest = require("nclua.nearest")
local sources = require("nclua.sources")

return function(name)
  local names = sources.chapters()
  local commands = sources.commands()
  table.move(commands, 1, #commands, #names + 1, names)
  local near = nearest.of(name, names)
  return ("cannot open '%s': no such file, chapter or command (%snclua chapters)"):format(
    name, near and "nearest: " .. near .. "; see " or "see ")
end
