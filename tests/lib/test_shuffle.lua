local luaunit = require("luaunit")
local shuffle = require("nclua.shuffle")

TestShuffle = {}

local LIST = { "a", "b", "c", "d", "e", "f", "g" }

function TestShuffle.test_an_order_of_the_same_things()
  local order = shuffle.order(LIST, 1, 2, 3)
  luaunit.assertItemsEquals(order, LIST)
  luaunit.assertEquals(table.concat(LIST), "abcdefg")
  luaunit.assertEquals(shuffle.order({}, 1), {})
end

function TestShuffle.test_the_same_seeds_give_the_same_order()
  luaunit.assertEquals(shuffle.order(LIST, 1, 4096, 0), shuffle.order(LIST, 1, 4096, 0))
  local seen, distinct = {}, 0
  for cycle = 1, 50 do
    local text = table.concat(shuffle.order(LIST, 1, 4096, cycle))
    if not seen[text] then seen[text], distinct = true, distinct + 1 end
  end
  luaunit.assertTrue(distinct > 45, distinct)
end

-- Every entry comes first about as often as any other.
function TestShuffle.test_no_place_is_preferred()
  local first = {}
  for seed = 1, 7000 do
    local one = shuffle.order(LIST, seed)[1]
    first[one] = (first[one] or 0) + 1
  end
  for _, one in ipairs(LIST) do luaunit.assertAlmostEquals(first[one], 1000, 150) end
end
