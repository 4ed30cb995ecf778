local inventory = require("nclua.inventory")
local luaunit = require("luaunit")

TestInventory = {}

function TestInventory.test_libraries()
  for _, kind in ipairs({ "driver", "nccl", "nvrtc", "cupti" }) do
    for _, library in ipairs(inventory.libraries(kind)) do
      luaunit.assertNotNil(io.open(library.path), library.path)
    end
  end
  luaunit.assertErrorMsgContains("'cupti' (did you mean 'nccl'?), got 'ncc'",
    inventory.libraries, "ncc")
end

function TestInventory.test_gpus_or_a_reason()
  local gpus, message, code = inventory.gpus(5)
  if gpus then
    luaunit.assertTrue(#gpus > 0)
  else
    luaunit.assertTrue(#message > 0 and #code > 0)
  end
  luaunit.assertErrorMsgContains("expected 1 to 3600 seconds", inventory.gpus, 0)
end

function TestInventory.test_backend()
  local name, devices = inventory.backend()
  luaunit.assertEquals({ name, devices }, { "cpu", 8 })
  luaunit.assertStrMatches(inventory.version(), "%d+%.%d+%.%d+")
end
