--- Loaded by `nclua --sandbox` before the script: takes from the Lua state what a script
--- from somebody else must not have. Where the kernel confines the process this gives clear
--- messages; where it cannot, it is all there is. Tables are changed in place, so that
--- nobody holds the old ones; the old functions are only in upvalues, and no function that
--- reads upvalues or values of the stack is left.
-- luacheck: globals io os string package debug load loadfile dofile
local lfs = require("lfs")
local sandbox = require("nclua.sandbox")

local function refused(what)
  return function() error(("sandbox: %s is not available"):format(what), 2) end
end

local function refuse(t, prefix, names)
  for _, name in ipairs(names) do t[name] = refused(prefix .. name) end
end

-- A function of paths. `uses` says what is done with each argument.
local function guard(t, name, uses)
  local inner, check = t[name], sandbox.check
  t[name] = function(...)
    for i, use in ipairs(uses) do
      local path = select(i, ...)
      if type(path) == "string" then
        local ok, message, code = check(path, use)
        if not ok then return nil, message, code end
      end
    end
    return inner(...)
  end
end

local function confine_io()
  local open, lines, input, output, check = io.open, io.lines, io.input, io.output,
    sandbox.check
  function io.open(path, mode, ...)
    local to_write = type(mode) == "string" and mode:find("[wa+]")
    if type(path) == "string" then
      local ok, message, code = check(path, to_write and "write" or "read")
      if not ok then return nil, message, code end
    end
    return open(path, mode, ...)
  end
  -- These raise where they cannot open a file.
  local function must(inner, use)
    return function(file, ...)
      if type(file) == "string" then
        local ok, message = check(file, use)
        if not ok then error(message, 2) end
      end
      return inner(file, ...)
    end
  end
  io.lines, io.input, io.output = must(lines, "read"), must(input, "read"),
    must(output, "write")
  refuse(io, "io.", { "popen", "tmpfile" })
end

local function confine_os()
  guard(os, "remove", { "write" })
  guard(os, "rename", { "write", "write" })
  refuse(os, "os.", { "execute", "tmpname" })
end

local function confine_lfs()
  guard(lfs, "mkdir", { "write" })
  guard(lfs, "rmdir", { "write" })
  refuse(lfs, "lfs.", { "link", "lock_dir", "touch" })
  guard(lfs, "dir", { "read" })
  local dir = lfs.dir
  function lfs.dir(...)
    local iterator, a, b, c = dir(...)
    if not iterator then error(a, 2) end
    return iterator, a, b, c
  end
end

-- Crafted bytecode can do what no Lua text can.
local function confine_load()
  local load_any, loadfile_any, check = load, loadfile, sandbox.check
  function load(chunk, name, mode, ...)
    if mode ~= nil and not tostring(mode):find("t") then
      return nil, "sandbox: only text is loaded"
    end
    return load_any(chunk, name, "t", ...)
  end
  function loadfile(path, mode, ...)
    if mode ~= nil and not tostring(mode):find("t") then
      return nil, "sandbox: only text is loaded"
    end
    if path ~= nil then
      local ok, message, code = check(path, "read")
      if not ok then return nil, message, code end
    end
    return loadfile_any(path, "t", ...)
  end
  local text_only = loadfile
  function dofile(path)
    local chunk, message = text_only(path)
    if not chunk then error(message, 0) end
    return chunk()
  end
  refuse(string, "string.", { "dump" })
  return text_only
end

-- Preloaded, embedded, and Lua text by package.path are left: no searcher of C modules.
local function confine_package(text_only)
  local searchpath, searchers, check = package.searchpath, package.searchers, sandbox.check
  searchers[3] = function(name)
    local path, message = searchpath(name, package.path)
    if not path then return message end
    local ok, why = check(path, "read")
    if not ok then error(why, 0) end
    local chunk, wrong = text_only(path)
    if not chunk then
      local text = "error loading module '%s' from file '%s':\n\t%s"
      error(text:format(name, path, wrong), 0)
    end
    return chunk, path
  end
  for i = #searchers, 4, -1 do searchers[i] = nil end
  package.cpath = ""
  refuse(package, "package.", { "loadlib" })
end

local KEPT = { traceback = true, getinfo = true }

-- Without the functions on the stack: the old ones are there while they run.
local function confine_debug()
  local getinfo = debug.getinfo
  for name in pairs(debug) do
    if not KEPT[name] then debug[name] = refused("debug." .. name) end
  end
  function debug.getinfo(...)
    local a, b, c = ...
    local info
    if type(a) == "thread" then
      info = c == nil and getinfo(a, b) or c ~= nil and getinfo(a, b, c)
    elseif type(a) == "number" then
      info = b == nil and getinfo(a + 1) or b ~= nil and getinfo(a + 1, b)
    else
      info = getinfo(...)
    end
    if info then info.func = nil end
    return info or nil
  end
end

confine_io()
confine_os()
confine_lfs()
confine_package(confine_load())
confine_debug()
