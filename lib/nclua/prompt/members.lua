--- What an object has, seen without running any code of a script: raw keys, __index tables,
--- and the methods and fields of nclua's own types.
local members = {}

local DEEPEST = 8

-- The tables behind the __index that the host gives a type (bind_type_fields in bindings/).
local function type_tables(metatable, index)
  local name = rawget(metatable, "__name")
  if type(name) ~= "string" or debug.getregistry()[name] ~= metatable then return {} end
  if type(index) == "table" then return { methods = index } end
  if type(index) ~= "function" or debug.getinfo(index, "S").what ~= "C" then return {} end
  local _, methods = debug.getupvalue(index, 1)
  local _, fields = debug.getupvalue(index, 2)
  return { methods = type(methods) == "table" and methods or nil,
    fields = type(fields) == "table" and fields or nil }
end

-- Calls visit(table, kind) for each table in which a name of the object can be.
local function each_table(object, visit)
  for _ = 1, DEEPEST do
    if type(object) == "table" then visit(object, "table") end
    local metatable = debug.getmetatable(object)
    local index = metatable and rawget(metatable, "__index")
    if type(object) == "userdata" and metatable then
      local tables = type_tables(metatable, index)
      if tables.methods then visit(tables.methods, "methods") end
      if tables.fields then visit(tables.fields, "fields") end
      return
    end
    if type(index) ~= "table" or rawequal(index, object) then return end
    object = index
  end
end

---@param object any
---@return table<string, any> names and values; true for a field that only a call could tell
function members.of(object)
  local found = {}
  each_table(object, function(t, kind)
    for key, value in next, t do
      if type(key) == "string" and found[key] == nil then
        found[key] = kind == "fields" or value
      end
    end
  end)
  return found
end

---The value at a path such as { "w", "comms" } from the globals, or nil.
---@param path string[]
---@return any
function members.at(path)
  local object = _G
  for _, name in ipairs(path) do
    local value
    each_table(object, function(t, kind)
      if value == nil and kind ~= "fields" then value = rawget(t, name) end
    end)
    if value == nil then return nil end
    object = value
  end
  return object
end

return members
