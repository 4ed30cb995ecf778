local files = require("nclua.files")
local lfs = require("lfs")
local luaunit = require("luaunit")
local scratch = require("scratch")

TestFiles = {}

function TestFiles.test_write_replaces_whole_files()
  local folder <close> = scratch.folder()
  local path = folder.path .. "/a.txt"
  assert(files.write(path, "first\n"))
  assert(files.write(path, "second\0\n"))
  luaunit.assertEquals(files.read(path), "second\0\n")
  luaunit.assertEquals(files.list(folder.path), { "a.txt" })
end

function TestFiles.test_failed_write_leaves_nothing()
  local folder <close> = scratch.folder()
  assert(lfs.mkdir(folder.path .. "/taken"))
  assert(lfs.mkdir(folder.path .. "/taken/inside"))
  local ok, message, code = files.write(folder.path .. "/taken", "text")
  luaunit.assertNil(ok)
  luaunit.assertStrContains(message, "taken")
  luaunit.assertEquals(code, "EIO")
  luaunit.assertEquals(files.list(folder.path), {})
  luaunit.assertNil((files.write(folder.path .. "/none/a.txt", "text")))
end

function TestFiles.test_full_disk_is_an_error()
  if not files.exists("/dev/full") then luaunit.skip("no /dev/full") end
  local folder <close> = scratch.folder()
  assert(lfs.link("/dev/full", folder.path .. "/full", true))
  local temporary = files.temporary
  files.temporary = function() return folder.path .. "/full" end
  local ok, message = files.write(folder.path .. "/a.txt", "text")
  files.temporary = temporary
  luaunit.assertNil(ok)
  luaunit.assertStrContains(message, "No space left")
end

function TestFiles.test_make_folder()
  local folder <close> = scratch.folder()
  local deep = folder.path .. "/a/b//c/"
  assert(files.make_folder(deep))
  assert(files.make_folder(deep))
  luaunit.assertEquals(lfs.attributes(folder.path .. "/a/b/c", "mode"), "directory")
  assert(files.write(folder.path .. "/file", ""))
  local ok, message, code = files.make_folder(folder.path .. "/file/x")
  luaunit.assertNil(ok)
  luaunit.assertStrContains(message, "not a folder")
  luaunit.assertEquals(code, "EEXIST")
end

function TestFiles.test_folder_of_a_path()
  local cases = { { "a", "." }, { "a/b", "a" }, { "/a", "/" }, { "/a/b", "/a" },
    { "a//b", "a" } }
  for _, case in ipairs(cases) do luaunit.assertEquals(files.folder(case[1]), case[2]) end
end

function TestFiles.test_read_says_why_not()
  local text, message, code = files.read("/no/such/file")
  luaunit.assertNil(text)
  luaunit.assertStrContains(message, "/no/such/file")
  luaunit.assertEquals(code, "ENOENT")
  luaunit.assertNil((files.read("/tmp")))
end
