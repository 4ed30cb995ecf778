local fuzz = require("fuzz")
local lfs = require("lfs")
local luaunit = require("luaunit")

--- Runs fn in an empty directory, which is removed with what fn left there.
local function in_scratch(fn)
  local home, path = lfs.currentdir(), os.tmpname()
  assert(os.remove(path))
  assert(lfs.mkdir(path))
  assert(lfs.chdir(path))
  local ok, message = xpcall(fn, debug.traceback)
  assert(lfs.chdir(home))
  assert(os.execute("rm -rf '" .. path .. "'"))
  if not ok then error(message, 0) end
end

TestLfs = {}

function TestLfs.test_is_the_package()
  luaunit.assertStrContains(lfs._VERSION, "LuaFileSystem")
  luaunit.assertNil(rawget(_G, "lfs")) -- the package's own global is left out
  luaunit.assertIs(require("lfs"), lfs)
  luaunit.assertEquals(lfs.attributes(".", "mode"), "directory")
end

function TestLfs.test_requires_under_a_strict_global_table()
  local loaded, meta = package.loaded.lfs, getmetatable(_G)
  package.loaded.lfs = nil
  setmetatable(_G, { __newindex = function(_, name) error("global " .. name) end })
  local ok, again = pcall(require, "lfs")
  setmetatable(_G, meta)
  package.loaded.lfs = loaded
  luaunit.assertTrue(ok, again)
  luaunit.assertIsFunction(again.dir)
end

function TestLfs.test_iterates()
  in_scratch(function()
    assert(io.open("a", "w")):close()
    local names = {}
    for name in lfs.dir(".") do names[#names + 1] = name end
    table.sort(names)
    luaunit.assertEquals(names, { ".", "..", "a" })
    for _ in lfs.dir(".") do break end -- luacheck: ignore 512
  end)
end

function TestLfs.test_close_takes_only_directories()
  local next_name, dir = lfs.dir(".")
  for _, value in ipairs { 42, "x", {}, io.stdout, print, coroutine.create(print), true } do
    luaunit.assertErrorMsgContains("directory metatable expected", dir.close, value)
    luaunit.assertErrorMsgContains("directory metatable expected", next_name, value)
  end
  luaunit.assertErrorMsgContains("directory metatable expected", dir.close)
  luaunit.assertEquals(getmetatable(dir), "protected")
end

function TestLfs.test_use_after_close()
  local next_name, dir = lfs.dir(".")
  dir:close()
  dir:close()
  luaunit.assertErrorMsgContains("closed directory", next_name, dir)
  local _, to_close <close> = lfs.dir(".")
  to_close:close()
end

function TestLfs.test_files()
  local file = assert(io.tmpfile())
  luaunit.assertTrue(lfs.lock(file, "w"))
  luaunit.assertTrue(lfs.unlock(file))
  file:close()
  luaunit.assertErrorMsgContains("closed file", lfs.lock, file, "w")
  luaunit.assertErrorMsgContains("closed file", lfs.setmode, file, "text")
end

function TestLfs.test_locked_directories()
  in_scratch(function()
    local lock = assert(lfs.lock_dir("."))
    luaunit.assertNil((lfs.lock_dir(".")))
    luaunit.assertError(lock.free, 42)
    luaunit.assertError(lock.free, io.stdout)
    lock:free()
    lock:free()
    luaunit.assertEquals(getmetatable(lock), "protected")
  end)
end

function TestLfs.test_any_value_anywhere()
  in_scratch(function()
    local report = fuzz.module(lfs, {
      n = 30000,
      skip = { chdir = true, link = true }, -- would leave the scratch directory
      values = { ".", "b", "mode", "target", "w", "r", "u", "text", "binary" },
      make = { function() return select(2, lfs.dir(".")) end },
    })
    luaunit.assertEquals(report.unreached, {})
  end)
end
