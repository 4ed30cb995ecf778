local combination = require("nclua.combination")
local luaunit = require("luaunit")

TestCombination = {}

function TestCombination.test_names()
  for text, name in pairs({ ["tree/simple/2"] = "Tree/Simple/2", AUTO = "auto",
    ["NVLSTree/Simple"] = "NVLSTree/Simple", ["ring/ll128/0"] = "Ring/LL128" }) do
    luaunit.assertEquals(combination.name(assert(combination.parse(text))), name)
  end
  for _, text in ipairs({ "", "tree", "tree/simple/x", "star/ll", "tree/ll/2/3" }) do
    local none, message, code = combination.parse(text)
    luaunit.assertNil(none, text)
    luaunit.assertStrContains(message, "'" .. text .. "'")
    luaunit.assertEquals(code, "EINVAL")
  end
end

local function names(...)
  local list = assert(combination.product(...))
  for i, one in ipairs(list) do list[i] = combination.name(one) end
  return table.concat(list, " ")
end

function TestCombination.test_product()
  luaunit.assertEquals(names({ "ring", "tree" }, { "LL" }, { 2, 4 }),
    "Ring/LL Ring/LL/2 Ring/LL/4 Tree/LL Tree/LL/2 Tree/LL/4")
  luaunit.assertEquals(#assert(combination.product({ "all" }, { "all" }, {})), 21)
  local _, message = combination.product({ "star" }, { "all" }, {})
  luaunit.assertStrContains(message, "unknown algorithm 'star': expected Tree, Ring")
  _, message = combination.product({ "all" }, { "star" }, {})
  luaunit.assertStrContains(message, "unknown protocol 'star'")
end
