--- Holds lib/meta/NAME.lua against what `require` gives, both ways: the functions of the
--- module, and of each of its types the methods and (where instances have them) the fields.
local lfs = require("lfs")
local luaunit = require("luaunit")

local FOLDER = "lib/meta"

local function set_of(...)
  local set = {}
  for _, t in ipairs({ ... }) do
    for name in pairs(t) do set[name] = true end
  end
  return set
end

--- What a stub says. A class is a handle if the stub declares a table for it, right after
--- its annotations: then `methods[class]` holds its functions, `fields[class]` its fields.
local Stub = {}
Stub.__index = Stub

function Stub:annotate(line)
  local class, parent = line:match("^%-%-%-@class ([%w_.]+):?%s*([%w_.]*)")
  if class then
    self.class, self.parents[class], self.fields[class] = class, parent, {}
  end
  local field = line:match("^%-%-%-@field ([%a_][%w_]*)")
  if field and self.class then self.fields[self.class][field] = true end
end

function Stub:declare(line)
  local name = line:match("^local ([%w_]+) = {}")
  if name and self.class then
    self.methods[self.class], self.tables[name] = {}, self.class
  end
  local owner, func = line:match("^function ([%w_]+)[.:]([%w_]+)%(")
  if owner then
    local class = self.tables[owner]
    local into = class and self.methods[class] or self.functions
    into[func] = true
  end
  self.class = nil
end

local function read_stub(path)
  local stub = setmetatable({
    functions = {}, methods = {}, fields = {}, parents = {}, tables = {},
  }, Stub)
  for line in io.lines(path) do
    stub.module = stub.module or line:match("^%-%-%-@meta ([%w_.]+)")
    if line:match("^%-%-%-") then stub:annotate(line) else stub:declare(line) end
  end
  return stub
end

--- A parent NAME.methods means: some functions of the module are methods, too. Which ones
--- is said in words, so those are left out.
function Stub:own_methods(class, exported)
  local own = set_of(exported)
  if self.parents[class]:match("%.methods$") then
    for name in pairs(self.functions) do own[name] = self.methods[class][name] end
  end
  return own
end

--- What a type has: methods, and fields if bind_type_fields made it (else nil).
local function members_of(metatable, name)
  local index = metatable.__index
  if type(index) == "table" then return set_of(index) end
  local tables, is_bound = {}, false
  for i = 1, 4 do
    local _, upvalue = debug.getupvalue(index, i)
    if type(upvalue) == "table" then tables[#tables + 1] = upvalue end
    is_bound = is_bound or upvalue == name
  end
  return set_of(tables[1] or {}), is_bound and set_of(tables[2]) or nil
end

--- Types of a module that a script can do something with, by name.
local function types_of(module)
  local prefix, types = module:match("[%w_]+$") .. ".", {}
  for name, value in pairs(debug.getregistry()) do
    if type(name) == "string" and name:sub(1, #prefix) == prefix and value.__index then
      local methods, fields = members_of(value, name)
      if next(methods) then types[name] = { methods = methods, fields = fields } end
    end
  end
  return types
end

local function functions_of(module)
  local functions = {}
  for name, value in pairs(require(module)) do
    if type(value) == "function" then functions[name] = true end
  end
  return functions
end

local function check_types(stub)
  local types = types_of(stub.module)
  luaunit.assertEquals(set_of(stub.methods), set_of(types), stub.module .. ": types")
  for name, exported in pairs(types) do
    local own = stub:own_methods(name, exported.methods)
    luaunit.assertEquals(stub.methods[name], own, name .. ": methods")
    if exported.fields then
      luaunit.assertEquals(stub.fields[name], exported.fields, name .. ": fields")
    end
  end
end

TestStubs = {}

for file in lfs.dir(FOLDER) do
  local name = file:match("^([%w_]+)%.lua$")
  if name then
    TestStubs["test_" .. name] = function()
      local stub = read_stub(FOLDER .. "/" .. file)
      luaunit.assertNotNil(stub.module, file .. " has no ---@meta NAME")
      local exported = functions_of(stub.module) -- opens the module: makes its types
      luaunit.assertEquals(stub.functions, exported, stub.module .. ": functions")
      check_types(stub)
    end
  end
end

--- The comparison itself must be able to fail.
function TestStubs.test_reader()
  local path = os.tmpname()
  local f <close> = assert(io.open(path, "w"))
  f:write("---@meta x.y\nlocal y = {}\nfunction y.a() end\n---@class y.t: y.methods\n")
  f:write("---@field n integer\nlocal t = {}\n\nfunction t:b(c) end\n---@class y.o\n")
  f:write("---@field z integer\n\nfunction y.d() end\n")
  f:flush()
  local stub = read_stub(path)
  os.remove(path)
  luaunit.assertEquals(stub.module, "x.y")
  luaunit.assertEquals(stub.functions, { a = true, d = true })
  luaunit.assertEquals(stub.methods, { ["y.t"] = { b = true } })
  luaunit.assertEquals(stub:own_methods("y.t", { a = true, c = true }), { c = true })
  luaunit.assertEquals(stub.fields["y.t"], { n = true })
end
