--- The reference pages are what the annotations say today.
local files = require("nclua.files")
local help = require("nclua.help")
local lfs = require("lfs")
local luaunit = require("luaunit")
local process = require("nclua.process")
local scratch = require("scratch")

local MEND = "the pages differ from the annotations; to write them anew: "
  .. "build/nclua docs/reference.lua"

TestReference = {}

local function pages(folder)
  local texts = {}
  for name in lfs.dir(folder .. "/generated") do
    if name:find("%.md$") then texts[name] = files.read(folder .. "/generated/" .. name) end
  end
  texts["README.md"] = files.read(folder .. "/README.md")
  return texts
end

function TestReference.test_pages_are_as_the_annotations()
  local folder <close> = scratch.folder()
  local result = assert(process.run({ os.getenv("NCLUA"), "docs/reference.lua",
    folder.path }, { timeout_s = 60 }))
  luaunit.assertEquals(result.exit_code, 0, result.stderr)
  local kept, made = pages("docs/reference"), pages(folder.path)
  for name, text in pairs(made) do
    luaunit.assertTrue(kept[name] == text, name .. ": " .. MEND)
  end
  for name in pairs(kept) do luaunit.assertNotNil(made[name], name .. ": " .. MEND) end
end

local SOURCE = [[
--- What it is for.
local other = require("other")

local sample = { other = other }

---@alias sample.unit "us" | "ns" of time
---@alias sample.kind
---| "a" the first

---@class sample.box: sample.base
---@field width_us number how long
---it lasts
local Box = {}

---Opens it.
---@param how? string
---@return boolean? ok
---@return string? code "ENOENT"
function Box:open(how) end

---@return integer
function sample.count() end
]]

-- Pages are compared with themselves above: here is what must stand in one.
function TestReference.test_what_is_read_of_a_source()
  local own, unit, kind, box = table.unpack(help.read("nclua.sample", SOURCE))
  luaunit.assertEquals(own.text, { "What it is for." })
  luaunit.assertEquals(own.members[1].usage, "sample.count()")
  luaunit.assertEquals(unit.name, "sample.unit")
  luaunit.assertEquals(unit.usage, '"us" | "ns" of time')
  luaunit.assertEquals(kind.usage, '"a" the first')
  luaunit.assertEquals(box.parent, "sample.base")
  luaunit.assertEquals(box.fields, { "width_us number how long it lasts" })
  local open = box.members[1]
  luaunit.assertEquals(open.text, { "Opens it." })
  luaunit.assertEquals(open.params, { "how? string" })
  luaunit.assertEquals(open.returns, { "boolean? ok", 'string? code "ENOENT"' })
end
