local embedded = require("nclua.embedded")
local luaunit = require("luaunit")

TestEmbedded = {}

function TestEmbedded.test_every_name_has_a_source()
  local names = embedded.names()
  luaunit.assertTrue(#names > 3)
  for _, name in ipairs(names) do
    local text, path = embedded.source(name)
    if name:match("^plugin:") then
      luaunit.assertEquals(text:sub(1, 4), "\127ELF", name)
    elseif name:match("^page:") then
      local begin = text:sub(1, 80):lower() -- a page, or a script with its comment
      local at = begin:find("^<!doctype html>") or begin:find("/*", 1, true)
      luaunit.assertNotNil(at, name)
    else
      luaunit.assertTrue(load(text, "=" .. path, "t") ~= nil, name)
    end
  end
end

function TestEmbedded.test_source_is_the_file()
  local text, path = embedded.source("nclua.csv")
  luaunit.assertEquals(path, "lib/nclua/csv.lua")
  local file <close> = assert(io.open(path))
  luaunit.assertEquals(text, file:read("a"))
  luaunit.assertNil(embedded.source("nclua.none"))
  luaunit.assertErrorMsgContains("string expected", embedded.source)
end
