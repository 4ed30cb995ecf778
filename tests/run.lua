--- Runs one luaunit file:
--- nclua tests/run.lua tests/bindings/test_stats.lua [luaunit options]
--- A file that runs no test fails; a skipped test prints its reason.
package.path = "tests/?.lua;/usr/share/lua/5.4/?.lua;" .. package.path
local luaunit = require("luaunit")

-- What is left of `arg` is luaunit's own command line.
local file = table.remove(arg, 1)
assert(file, "usage: nclua tests/run.lua FILE [luaunit options]")
dofile(file)

local runner = luaunit.LuaUnit.new()
runner:setOutputType("text")
local failed = runner:runSuite()
local result = runner.result
for _, test in ipairs(result.skippedTests) do
  print(("skipped: %s: %s"):format(test.testName, test.msg))
end
if result.passedCount == 0 and result.skippedCount == 0 then
  io.stderr:write(file, ": no test ran\n")
  os.exit(1, true)
end
os.exit(failed == 0, true)
