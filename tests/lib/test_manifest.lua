local files = require("nclua.files")
local luaunit = require("luaunit")
local manifest = require("nclua.manifest")
local scratch = require("scratch")

TestManifest = {}

function TestManifest.test_there_and_back()
  local text = manifest.encode({ { "a", 1 }, { "b", "x=y" }, { "c", "two\n lines\n" } },
    { "one --x=1", "two" })
  luaunit.assertEquals(text, "a=1\nb=x=y\nc=two lines \ncommands:\n  one --x=1\n  two\n")
  local values, commands = manifest.decode(text)
  luaunit.assertEquals(values, { a = "1", b = "x=y", c = "two lines " })
  luaunit.assertEquals(commands, { "one --x=1", "two" })
end

function TestManifest.test_read()
  local folder <close> = scratch.folder()
  luaunit.assertNil((manifest.read(folder.path)))
  assert(files.write(folder.path .. "/manifest.txt", manifest.encode({ { "k", "v" } }, {})))
  luaunit.assertEquals((manifest.read(folder.path)), { k = "v" })
end
