--- The files that docs/architecture.md names exist, and its floor is the one that holds.
local files = require("nclua.files")
local lfs = require("lfs")
local luaunit = require("luaunit")

local PAGE = assert(files.read("docs/architecture.md"))
local ROWS = { "host", "bindings", "lib", "scripts", "plugins", "tests", "docs" }

TestArchitecture = {}

local function names_of_the_tree()
  local names = {}
  for _, row in ipairs(ROWS) do
    for _, path in ipairs(files.list(row)) do names[path:match("[^/]+$")] = true end
  end
  return names
end

-- "ring.c" may lie anywhere, "host/cpu/ring.c" only there; summary.md is no file of ours.
local function is_ours(code)
  return code:find("^[%w_/]+%.[ch]$") or code:find("^[%w_/]+%.lua$")
    or code:find("^[%w_/]+$") and files.exists(code:match("^[%w_]+/") or "")
end

function TestArchitecture.test_files_exist()
  local names, count = names_of_the_tree(), 0
  for code in PAGE:gmatch("`([^`\n]+)`") do
    if is_ours(code) then
      local exists = lfs.attributes(code) ~= nil or names[code] or names[code .. ".c"]
        or lfs.attributes(files.folder(code) .. "/" .. code:match("[^/]*$") .. ".c") ~= nil
      luaunit.assertTrue(exists or false, "docs/architecture.md: " .. code)
      count = count + 1
    end
  end
  luaunit.assertTrue(count > 60)
end

function TestArchitecture.test_modules_exist()
  local count = 0
  for code in PAGE:gmatch("`(nclua%.[%w_.]+)`") do
    luaunit.assertTrue(pcall(require, code), "docs/architecture.md: " .. code)
    count = count + 1
  end
  luaunit.assertTrue(count > 5)
end

function TestArchitecture.test_floor()
  local said = PAGE:match("The %*%*floor%*%*(.-)%. It")
  local drawn = files.read("docs/architecture.svg")
  local rule = files.read("tests/host/test_layering.lua"):match("FLOOR = {(.-)\n}")
  local there, found = {}, {}
  for name in rule:gmatch('"host/([%w_]+%.h)"') do there[name] = true end
  for name in said:gmatch("([%w_]+%.h)`") do found[name] = true end
  luaunit.assertEquals(found, there)
  for name in pairs(there) do luaunit.assertStrContains(drawn, name) end
end
