--- The modules' own documentation: read from the annotations that editors read, which stand
--- in the stubs of the C modules and in the Lua modules themselves.
local help = {}

local embedded = require("nclua.embedded")
local nearest = require("nclua.nearest")

---@class help.entry
---@field kind "module"|"function"|"type"|"alias"
---@field name string "nccl.all_reduce", "cuda.buffer:fill", "cuda.stream"
---@field usage string "comm:all_reduce(...)", as it is called
---@field text string[]
---@field parent string? of a type: what it extends
---@field fields string[] of a type
---@field params string[]
---@field returns string[]
---@field members help.entry[] functions of a module, methods of a type

local function new_entry(kind, name, notes)
  return { kind = kind, name = name, usage = name, text = notes.text, parent = notes.parent,
    fields = notes.fields, params = notes.params, returns = notes.returns, members = {} }
end

local function new_notes()
  return { text = {}, fields = {}, params = {}, returns = {}, aliases = {} }
end

local LISTS = { field = "fields", param = "params", ["return"] = "returns",
  alias = "aliases" }

-- A line without a tag goes on with the tag before it, if that has words of its own.
local function continue(notes, line)
  local list, text = notes.open, line:match("^%-%-%-[ |]*(.*)$")
  if not list then
    notes.text[#notes.text + 1] = not line:find("^%-%-%-|") and text or nil
  else
    local mark = line:find("^%-%-%-|") and list == notes.aliases and "| " or ""
    list[#list] = list[#list] .. " " .. mark .. text
  end
end

local function annotate(notes, line)
  local tag, rest = line:match("^%-%-%-@(%w+)%s*(.*)$")
  if not tag then
    return continue(notes, line)
  end
  notes.open = notes[LISTS[tag]]
  if tag == "class" then
    notes.class, notes.fields = rest:match("^[%w_.]+"), {}
    notes.parent = rest:match("^[%w_.]+:%s*(.+)$")
    notes.text[#notes.text + 1] = rest:match("^[%w_.]+%s+(.+)$")
  elseif notes.open then
    notes.open[#notes.open + 1] = rest
  end
end

local reader = {}
reader.__index = reader

function reader:add(entry)
  local list = self.entries[entry.name] or {}
  self.entries[entry.name] = list
  list[#list + 1] = entry
  self.order[#self.order + 1] = entry.kind ~= "function" and entry or nil
  return entry
end

function reader:declare_function(owner, mark, name, args, notes)
  local of = self.tables[owner]
  if not of then return end
  local entry = new_entry("function", of.name .. mark .. name, notes)
  entry.usage = entry.name .. args
  of.members[#of.members + 1] = self:add(entry)
end

function reader:declare_aliases(notes)
  for _, alias in ipairs(notes.aliases) do
    local name, meaning = alias:match("^([%w_.]+)[%s|]*(.*)$")
    self:add(new_entry("alias", name, new_notes())).usage = meaning
  end
end

function reader:declare(line, notes)
  local variable = line:match("^local ([%w_]+) = {")
  self:declare_aliases(notes)
  if variable == self.short and not self.tables[variable] then
    local of = self:add(new_entry("module", self.short, notes))
    if #of.text == 0 then of.text = self.header end
    self.tables[variable] = of
  elseif notes.class then
    local of = self:add(new_entry("type", notes.class, notes))
    if variable then self.tables[variable] = of end
  end
  local owner, mark, name, args = line:match("^function ([%w_]+)([.:])([%w_]+)(%b())")
  if owner then self:declare_function(owner, mark, name, args, notes) end
end

-- A class ends at the next line that is no annotation. What a file begins with is its
-- header, even if something else than the module follows at once.
function reader:read(module, source)
  self.short, self.tables, self.header = module:match("[%w_]+$"), {}, {}
  local notes, is_first = new_notes(), true
  for line in source:gmatch("([^\n]*)\n") do
    if line:find("^%-%-%-") then
      annotate(notes, line)
    else
      if #self.header == 0 and (line == "" or is_first) then self.header = notes.text end
      is_first = false
      if line ~= "" or notes.class or notes.aliases[1] then self:declare(line, notes) end
      notes = new_notes()
    end
  end
end

local function module_of(name)
  return name:match("^meta:(.*)$") or name:match("^nclua%.[%w_]+$")
end

---What one module declares.
---@param module string "nclua.stats"
---@param source string its stub, or its own text
---@return help.entry[] modules, types and aliases in the source's order
function help.read(module, source)
  local all = setmetatable({ entries = {}, order = {} }, reader)
  all:read(module, source)
  return all.order
end

local index

local function entries()
  if index then return index end
  local all = setmetatable({ entries = {}, order = {} }, reader)
  for _, name in ipairs(embedded.names()) do
    local module = module_of(name)
    if module then all:read(module, embedded.source(name)) end
  end
  index = all.entries
  return index
end

-- Functions of a module whose first argument is a handle are its methods as well:
-- nccl.comm:split is told by nccl.split.
local function method_of_parent(all, name)
  local module, method = name:match("^([%w_]+)%.[%w_]+[:.]([%w_]+)$")
  return module and all[module .. "." .. method]
end

-- "comm:abort": of any type that is called comm.
local function method_of_type(all, name)
  local type_name, method = name:match("^([%w_]+)[:.]([%w_]+)$")
  if not type_name then return nil end
  for candidate in pairs(all) do
    if candidate:match("%.([%w_]+)$") == type_name then
      local full = candidate .. ":" .. method
      local found = all[full] or method_of_parent(all, full)
      if found then return found end
    end
  end
end

local function by_last_name(all, word)
  local found = {}
  for name, list in pairs(all) do
    if name:match("[%w_]+$") == word then table.move(list, 1, #list, #found + 1, found) end
  end
  table.sort(found, function(a, b) return a.name < b.name end)
  return found[1] and found
end

---Entries of that name; of methods and functions the last part is enough.
---@param name string
---@return help.entry[]? entries
function help.find(name)
  local all, word = entries(), name:gsub("^nclua%.", ""):gsub("%(.*$", "")
  return all[word] or all[(word:gsub("%.([%w_]+)$", ":%1"))] or method_of_parent(all, word)
    or method_of_type(all, word) or not word:find("[.:]") and by_last_name(all, word) or nil
end

local function summary(entry)
  local text = table.concat(entry.text, " ")
  return text:match("^(.-[.:])%s") or text
end

local function list_members(lines, entry)
  if #entry.members == 0 then return end
  lines[#lines + 1] = ""
  for _, one in ipairs(entry.members) do
    local usage = one.usage:sub(#entry.name + 1):gsub("^%.", "")
    local line = ("  %-34s %s"):format(usage, summary(one))
    lines[#lines + 1] = (#line > 90 and line:sub(1, 87) .. "..." or line):gsub("%s+$", "")
  end
end

local function list_notes(lines, title, notes)
  for i, note in ipairs(notes) do
    lines[#lines + 1] = ("%-9s %s"):format(i == 1 and title or "", note)
  end
end

local function title(entry)
  if entry.kind == "function" then return entry.usage end
  if entry.kind == "alias" then return ("type %s = %s"):format(entry.name, entry.usage) end
  return entry.kind .. " " .. entry.name
end

local function entry_text(entry)
  local lines = { title(entry) }
  for _, line in ipairs(entry.text) do lines[#lines + 1] = "  " .. line end
  list_notes(lines, "fields", entry.fields)
  list_notes(lines, "takes", entry.params)
  list_notes(lines, "returns", entry.returns)
  list_members(lines, entry)
  return table.concat(lines, "\n")
end

---@return string[] names of everything that has documentation
function help.names()
  local names = {}
  for name in pairs(entries()) do names[#names + 1] = name end
  table.sort(names)
  return names
end

local MOST = 4

---@param name string "nccl", "nccl.all_reduce", "comm:abort", "cuda.buffer", "all_reduce"
---@return string? text
---@return string? message with the nearest name
---@return string? code "ENOENT"
function help.text(name)
  local found = help.find(name)
  if found then
    local texts = {}
    for i = 1, math.min(#found, MOST) do texts[i] = entry_text(found[i]) end
    if #found > MOST then texts[#texts + 1] = ("... and %d more"):format(#found - MOST) end
    return table.concat(texts, "\n\n")
  end
  local names = help.names()
  for i = 1, #names do names[#names + 1] = names[i]:match("[%w_]+$") end
  local near = nearest.of(name, names)
  local hint = near and ("; do you mean %s?"):format(near) or ""
  return nil, ("no help for '%s'%s"):format(name, hint), "ENOENT"
end

return help
