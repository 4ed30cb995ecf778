--- The layering rule: a file includes and requires only its own row and rows below it.
local lfs = require("lfs")
local luaunit = require("luaunit")

-- Higher rows know lower ones, never the reverse.
local ROWS = {
  { "scripts/", 6 },
  { "lib/nclua/", 5 },
  { "bindings/", 4 },
  { "host/cuda/", 2 },
  { "host/cpu/", 2 },
  { "host/", 3 },
}
local FLOOR = {
  ["host/err.h"] = true,
  ["host/abi_cuda.h"] = true,
  ["host/abi_nccl.h"] = true,
  ["host/backend.h"] = true,
  ["host/half.h"] = true,
  ["host/dtype.h"] = true,
}
local GENERATED = { ["host/version.h"] = true }

local function row_of(path)
  for _, row in ipairs(ROWS) do
    if path:sub(1, #row[1]) == row[1] then return row[2], row[1] end
  end
end

local function each_file(folder, pattern, visit)
  for name in lfs.dir(folder) do
    local path = folder .. "/" .. name
    if name:sub(1, 1) == "." then -- luacheck: ignore 542
    elseif lfs.attributes(path, "mode") == "directory" then
      each_file(path, pattern, visit)
    elseif name:match(pattern) then
      visit(path)
    end
  end
end

local function each_match(path, pattern, visit)
  for line in io.lines(path) do
    local found = line:match(pattern)
    if found then visit(found, line) end
  end
end

local function check_include(path, included)
  local from, from_folder = row_of(path)
  local to, to_folder = row_of(included)
  if not to or FLOOR[included] or GENERATED[included] then return end
  if path == "host/main.c" then return end -- it wires the rows together
  local ok = to < from or to_folder == from_folder
  luaunit.assertTrue(ok, ("%s must not include %s"):format(path, included))
end

TestLayering = {}

function TestLayering.test_includes()
  local seen = 0
  for _, folder in ipairs({ "host", "bindings" }) do
    each_file(folder, "%.[ch]$", function(path)
      each_match(path, '^#include "([^"]+)"', function(included)
        seen = seen + 1
        luaunit.assertStrContains(included, "/", false, path .. ": paths start at the root")
        check_include(path, included)
      end)
    end)
  end
  luaunit.assertTrue(seen > 20)
end

function TestLayering.test_floor_includes_only_the_floor()
  for header in pairs(FLOOR) do
    each_match(header, '^#include "([^"]+)"', function(included)
      luaunit.assertTrue(FLOOR[included], header .. " includes " .. included)
    end)
  end
end

function TestLayering.test_library_does_not_require_chapters()
  each_file("lib/nclua", "%.lua$", function(path)
    each_match(path, 'require%(?"([%w_.]+)"', function(module)
      local file = "scripts/" .. module:gsub("%.", "/") .. ".lua"
      luaunit.assertNil(lfs.attributes(file), path .. " requires the chapter " .. module)
    end)
  end)
end

function TestLayering.test_plugins_know_nothing_of_the_host()
  each_file("plugins", "%.[ch]$", function(path)
    each_match(path, '^#include "([^"]+)"', function(included)
      luaunit.assertEquals(included:match("^(%w+)/"), "plugins", path)
    end)
  end)
end
