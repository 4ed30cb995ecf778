--- The manifest: what was run, on what, with which options, as `key=value` lines. It is
--- written last, so that a directory with a manifest is complete.
local manifest = {}

local files = require("nclua.files")

manifest.FILE = "manifest.txt"

---@class manifest.pair
---@field [1] string key, without "=" and newline
---@field [2] any value

-- One line a value, whatever is in it.
local function line(text)
  return (tostring(text):gsub("%s*[\r\n]+%s*", " "))
end

---@param pairs_in_order manifest.pair[]
---@param commands string[]
---@return string text
function manifest.encode(pairs_in_order, commands)
  local lines = {}
  for i, pair in ipairs(pairs_in_order) do lines[i] = pair[1] .. "=" .. line(pair[2]) end
  lines[#lines + 1] = "commands:"
  for _, command in ipairs(commands) do lines[#lines + 1] = "  " .. line(command) end
  return table.concat(lines, "\n") .. "\n"
end

---@param text string
---@return table<string, string> values by key
---@return string[] commands
function manifest.decode(text)
  local values, commands = {}, {}
  for each in text:gmatch("([^\n]*)\n") do
    local key, value = each:match("^([^%s=][^=]*)=(.*)$")
    if key then values[key] = value end
    commands[#commands + 1] = each:match("^  (.*)$")
  end
  return values, commands
end

---@param folder string a run's
---@return table<string, string>? values nil if the run is not complete
---@return string[]|string commands or the message
function manifest.read(folder)
  local text, message = files.read(folder .. "/" .. manifest.FILE)
  if not text then return nil, message end
  return manifest.decode(text)
end

return manifest
