--- The chapters and what belongs to them, as they lie in the binary.
local sources = {}

local embedded = require("nclua.embedded")
local options = require("nclua.options")

local function named(pattern)
  local names = {}
  for _, name in ipairs(embedded.names()) do names[#names + 1] = name:match(pattern) end
  table.sort(names)
  return names
end

---@return string[]
function sources.chapters()
  return named("^chapter:(.*)$")
end

---@return string[] sub-commands
function sources.commands()
  return named("^nclua%.cli%.([%w_]+)$")
end

---The first paragraph of what a script says of itself, as one line.
---@param text string of the script
---@return string
function sources.summary(text)
  local header = options.header(text) .. "\n\n"
  return (header:match("^(.-)\n%s*\n"):gsub("%s+", " "):gsub("%s+$", ""))
end

-- Modules that a script requires and that are neither nclua's own nor Lua's.
local function required(text, found)
  for name in text:gmatch("require%s*%(?%s*[\"']([%w_.]+)[\"']") do
    local source = not name:find("^nclua%.") and embedded.source(name)
    if source and not found[name] and name ~= "argparse" then
      found[name] = source
      required(source, found)
    end
  end
  return found
end

---@class sources.file
---@field path string from the folder of the chapter
---@field text string

---A chapter's files, the chapter itself first.
---@param name string "interview"
---@return sources.file[]? files nil: there is no such chapter
function sources.chapter(name)
  local text = embedded.source("chapter:" .. name)
  if not text then return nil end
  local list = {}
  for module, source in pairs(required(text, {})) do
    list[#list + 1] = { path = module:gsub("%.", "/") .. ".lua", text = source }
  end
  table.sort(list, function(a, b) return a.path < b.path end)
  table.insert(list, 1, { path = name .. ".lua", text = text })
  return list
end

---What an editor reads: stubs of the C modules, and the annotated Lua library.
---@return sources.file[]
function sources.stubs()
  local list = {}
  for _, name in ipairs(embedded.names()) do
    local stub = name:match("^meta:nclua%.(.*)$")
    local path = stub and "meta/" .. stub or name:find("^nclua%.") and name:gsub("%.", "/")
    local text = embedded.source(name)
    if path then list[#list + 1] = { path = path .. ".lua", text = text } end
  end
  return list
end

return sources
