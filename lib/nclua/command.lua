--- What every sub-command does first: read its options; --help and wrong usage end it here.
local options = require("nclua.options")

local command = {}

--- The option values. Ends the program with status 0 after --help, 2 for wrong usage.
---@param name string "nclua doctor"
---@param description string
---@param rows options.row[]
---@param args string[]
---@return table<string, any> values
function command.options(name, description, rows, args)
  local result, message = options.parse(name, description, rows, args)
  if not result then
    io.stderr:write(name, ": ", message, "\n")
    os.exit(2)
  end
  if result.help then
    print(result.help)
    os.exit(0)
  end
  return result.values
end

return command
