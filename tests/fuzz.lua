--- Calls everything that a module exports, and every method of what it returns, with random
--- values. A raised error is fine, a crash ends the process and so fails the test; run it
--- under `asan` to see more. NCLUA_FUZZ_TRACE=1 prints every call before it is made.
---
---   local report = fuzz.module(stats, { seed = 1, n = 20000 })
---   luaunit.assertEquals(report.unreached, {})
local fuzz = {}

local trace = os.getenv("NCLUA_FUZZ_TRACE")
local HANDLES = 24

local NUMBERS = {
  0, 1, 2, 3, 5, 8, -1, -2, 7.5, 0.5, -0.0, 1e-300, 1e300, 0 / 0, 1 / 0, -1 / 0, 42, 255,
  1 << 31, 1 << 32, (1 << 53) + 1, math.maxinteger, math.mininteger, 2.0 ^ 63,
}
local STRINGS = {
  "", "a", "name", "close", "1", "-1", "0x10", "1e999", "\0", "a\0b", "%s%n%d", "\xff\xfe",
  ("x"):rep(300), ("y"):rep(70000), "\n", "'; --", "ä", "12345678",
}

local function noisy_table()
  return setmetatable({ 1, 2 }, {
    __index = function() error("no index") end,
    __newindex = function() error("no newindex") end,
    __len = function() return 1e9 end,
    __tostring = function() error("no tostring") end,
    __name = "stats.vector", -- a lie
  })
end

local function closed_file()
  local file = assert(io.tmpfile())
  file:close()
  return file
end

--- Values that are the same in every run, and refer to nothing of the module.
local function foreign_values()
  local loop = {}
  loop[1], loop.loop = loop, loop
  return {
    {}, { 1, 2, 3 }, { 1, "2", {} }, { 1.5, 0 / 0 }, { nil, 2 }, { a = 1, b = "x" }, loop,
    { [1 << 40] = 1 }, noisy_table(), { { 1 }, { 2 } }, type, function() end, error,
    coroutine.create(function() end), coroutine.wrap(function() coroutine.yield(1) end),
    closed_file(), assert(io.tmpfile()), true, false, math.huge, string.rep,
  }
end

local Fuzzer = {}
Fuzzer.__index = Fuzzer

local function any(list)
  return list[math.random(#list)]
end

--- The functions of a handle: its metatable is protected, hence `debug`.
local function methods_of(value)
  local meta = type(value) == "userdata" and debug.getmetatable(value)
  local index = meta and rawget(meta, "__index")
  for i = 1, type(index) == "function" and 4 or 0 do
    local _, upvalue = debug.getupvalue(index, i)
    if type(upvalue) == "table" then return upvalue end
  end
  return type(index) == "table" and index or {}
end

--- Names in order, because `pairs` has another order in every process.
local function sorted_names(functions, skip)
  local names = {}
  for name, value in pairs(functions) do
    if type(name) == "string" and type(value) == "function" and not skip[name] then
      names[#names + 1] = name
    end
  end
  table.sort(names)
  return names
end

function Fuzzer:keep(value)
  local kind = type(value)
  if kind ~= "userdata" and kind ~= "function" then return end
  local i = #self.handles < HANDLES and #self.handles + 1 or math.random(HANDLES)
  self.handles[i] = value
end

--- Runs in the middle of the module's C code: closes, collects, calls back, raises.
function Fuzzer:callback()
  return function(...)
    self.depth = self.depth + 1
    for i = 1, select("#", ...) do self:keep((select(i, ...))) end
    if self.depth < 4 then self:step() end
    self.depth = self.depth - 1
    if math.random(3) == 1 then error(self:value()) end
    return self:value(), self:value()
  end
end

function Fuzzer:option_table()
  local t = {}
  for _ = 1, math.random(3) do
    local key = any(self.words)
    t[key] = self:value()
  end
  return t
end

function Fuzzer:value()
  local roll = math.random(16)
  if roll <= 3 then return any(NUMBERS) end
  if roll <= 5 then return any(STRINGS) end
  if roll <= 7 then return any(self.foreign) end
  if roll <= 10 and #self.handles > 0 then return any(self.handles) end
  if roll == 11 then return self:callback() end
  if roll == 12 then return nil end
  if roll == 13 then return self:option_table() end
  if #self.values > 0 then return any(self.values) end
  return math.random(-3, 12)
end

local function shown(value)
  local text = type(value) == "string" and ("%q"):format(value:sub(1, 60)) or type(value)
  return math.type(value) and tostring(value) or text
end

function Fuzzer:call(name, f, ...)
  self.calls = self.calls + 1
  if trace then
    local words = {}
    for i = 1, select("#", ...) do words[i] = shown((select(i, ...))) end
    io.stderr:write(self.calls, " ", name, "(", table.concat(words, ", "), ")\n")
  end
  local results = table.pack(pcall(f, ...))
  local counts = self.by_name[name] or { returned = 0, raised = 0 }
  self.by_name[name] = counts
  if results[1] then
    counts.returned = counts.returned + 1
    for i = 2, math.min(results.n, 8) do self:keep(results[i]) end
  else
    counts.raised = counts.raised + 1
  end
end

function Fuzzer:arguments()
  local n = math.random(0, 5)
  local list = {}
  for i = 1, n do list[i] = self:value() end
  return table.unpack(list, 1, n)
end

--- What the language itself does with a value, without a function's name.
local OPERATORS = {
  tostring,
  function(x) return #x end,
  function(x, key) return x[key] end,
  function(x, key, value) x[key] = value end,
  function(x) local _ <close> = x end,
  function(x, y) return x == y, x < y end,
  function(x, y) return x .. y end,
  function(x, ...) return x(...) end,
  function(x) for _ in x do break end end, -- luacheck: ignore 512
}

function Fuzzer:step_handle()
  local handle = any(self.handles)
  local methods = methods_of(handle)
  local names = sorted_names(methods, self.skip)
  if #names == 0 or math.random(4) == 1 then
    local i = math.random(#OPERATORS)
    return self:call("operator " .. i, OPERATORS[i], handle, self:arguments())
  end
  local name = any(names)
  if math.random(8) == 1 then handle = self:value() end -- a wrong self
  self:call(":" .. name, methods[name], handle, self:arguments())
end

function Fuzzer:step()
  local roll = math.random(100)
  if roll == 1 then collectgarbage() end
  if roll <= 6 and #self.make > 0 then self:call("make", any(self.make)) end
  if #self.handles > 0 and roll % 2 == 0 then return self:step_handle() end
  local name = any(self.names)
  self:call(name, self.mod[name], self:arguments())
end

local function unreached(self)
  local names = {}
  for _, name in ipairs(self.names) do
    if not self.by_name[name] then names[#names + 1] = name end
  end
  return names
end

---@class fuzz.options
---@field seed? integer default 1
---@field n? integer calls, default 10000
---@field skip? table<string, boolean> functions and methods not to call (they would block)
---@field values? any[] values worth trying: dtype names, SQL, paths, valid tables
---@field make? (fun(): any)[] make a fresh, valid handle, so that methods get far

---@class fuzz.report
---@field calls integer
---@field by_name table<string, { returned: integer, raised: integer }>
---@field unreached string[] functions of the module that were never called

--- Fuzzes a module table. Work in a scratch directory if the module can touch files.
---@param mod table
---@param opt? fuzz.options
---@return fuzz.report
function fuzz.module(mod, opt)
  opt = opt or {}
  math.randomseed(opt.seed or 1)
  local skip = opt.skip or {}
  local self = setmetatable({
    mod = mod, skip = skip, names = sorted_names(mod, skip), values = opt.values or {},
    make = opt.make or {}, foreign = foreign_values(), handles = {}, by_name = {},
    calls = 0, depth = 0,
  }, Fuzzer)
  self.words = { "a", 1, 2, "n", "name", table.unpack(self.values) }
  while self.calls < (opt.n or 10000) do self:step() end
  self.handles = {}
  collectgarbage()
  return { calls = self.calls, by_name = self.by_name, unreached = unreached(self) }
end

return fuzz
