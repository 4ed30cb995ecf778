--- What Tab does: names of globals, members, modules, commands and files.
local complete = {}

local embedded = require("nclua.embedded")
local files = require("nclua.files")
local lfs = require("lfs")
local members = require("nclua.prompt.members")

local KEYWORDS = { "and", "break", "do", "else", "elseif", "end", "false", "for",
  "function", "goto", "if", "in", "local", "nil", "not", "or", "repeat", "return", "then",
  "true", "until", "while" }
local WIDEST, MOST = 78, 120

local function is_callable(value)
  local metatable = debug.getmetatable(value)
  return type(value) == "function"
    or metatable ~= nil and rawget(metatable, "__call") ~= nil
end

-- Each candidate: its name, and what follows it once it is the only one.
local function names_of(object, prefix, separator)
  local found = {}
  for name, value in pairs(members.of(object)) do
    local fits = name:find("^[%a_][%w_]*$") and name:sub(1, #prefix) == prefix
    local is_hidden = name:find("^__") and not prefix:find("^__")
    local is_method = separator ~= ":" or is_callable(value)
    if fits and not is_hidden and is_method then
      found[#found + 1] = { name, is_callable(value) and "(" or "" }
    end
  end
  return found
end

local function member_names(chain, prefix)
  local path, separator = {}, nil
  for name, mark in chain:gmatch("([%a_][%w_]*)%s*([.:])") do
    path[#path + 1], separator = name, mark
  end
  local object = members.at(path)
  return object ~= nil and names_of(object, prefix, separator) or {}
end

local function global_names(prefix)
  local found = names_of(_G, prefix)
  for _, word in ipairs(KEYWORDS) do
    if prefix ~= "" and word:sub(1, #prefix) == prefix then
      found[#found + 1] = { word, "" }
    end
  end
  return found
end

-- Those whose name is no Lua module's are chapters, stubs, plugins.
local function module_names(prefix)
  local names, found = {}, {}
  for _, name in ipairs(embedded.names()) do names[name] = not name:find(":") or nil end
  for name in next, package.preload do names[name] = true end
  for name in next, package.loaded do names[name] = true end
  for name in pairs(names) do
    if name:sub(1, #prefix) == prefix then found[#found + 1] = { name, "" } end
  end
  return found
end

local function file_names(prefix)
  local folder, start = prefix:match("^(.*/)([^/]*)$")
  local found = {}
  start = start or prefix
  if lfs.attributes(folder or ".", "mode") ~= "directory" then return found end
  for name in lfs.dir(folder or ".") do
    local is_hidden = name:find("^%.") and not start:find("^%.")
    if name:sub(1, #start) == start and not is_hidden then
      local path = (folder or "") .. name
      local is_folder = files.exists(path .. "/.")
      found[#found + 1] = { path, is_folder and "/" or "" }
    end
  end
  return found
end

local function command_names(prefix)
  local found = {}
  for _, name in ipairs({ "help", "load", "quit", "time" }) do
    if name:sub(1, #prefix) == prefix then found[#found + 1] = { name, " " } end
  end
  return found
end

local function after_name(text)
  local chain, prefix = text:match("([%a_][%w_.:%s]*[.:])%s*([%w_]*)$")
  if chain then
    local names = member_names(chain:match("[%a_][%w_.:]*$") or chain, prefix)
    return names, prefix
  end
  prefix = text:match("[%a_][%w_]*$") or ""
  return global_names(prefix), prefix
end

---@param text string before the cursor
---@return { [1]: string, [2]: string }[] candidates
---@return string prefix of them that is there already
function complete.candidates(text)
  local module = text:match("require%s*%(?%s*[\"']([%w_.]*)$")
  if module then return module_names(module), module end
  local file = text:match("^%s*:load%s+(.*)$")
  if file then return file_names(file), file end
  local command = text:match("^%s*:(%a*)$")
  if command then return command_names(command), command end
  return after_name(text)
end

local function common(candidates)
  local start = candidates[1][1]
  for _, one in ipairs(candidates) do
    while one[1]:sub(1, #start) ~= start do start = start:sub(1, -2) end
  end
  return start
end

---Names in columns, down and then across.
---@param names string[] sorted
---@return string
function complete.columns(names)
  local left_out = #names - MOST
  if left_out > 0 then names = table.move(names, 1, MOST, 1, {}) end
  local width = 0
  for _, name in ipairs(names) do width = math.max(width, #name + 2) end
  local across = math.max(1, WIDEST // width)
  local down, rows = (#names + across - 1) // across, {}
  for row = 1, down do
    local cells = {}
    for i = row, #names, down do
      cells[#cells + 1] = names[i] .. (" "):rep(width - #names[i])
    end
    rows[row] = table.concat(cells):gsub("%s+$", "")
  end
  if left_out > 0 then rows[#rows + 1] = ("... and %d more"):format(left_out) end
  return table.concat(rows, "\n")
end

---@param text string before the cursor
---@return string? insert
---@return string? show
function complete.tab(text)
  if text:find("^%s*$") then return "  " end
  local candidates, prefix = complete.candidates(text)
  if #candidates == 0 then return nil end
  if #candidates == 1 then
    return candidates[1][1]:sub(#prefix + 1) .. candidates[1][2]
  end
  local start = common(candidates)
  if #start > #prefix then return start:sub(#prefix + 1) end
  local names = {}
  for i, one in ipairs(candidates) do names[i] = one[1] end
  table.sort(names)
  return nil, complete.columns(names)
end

return complete
