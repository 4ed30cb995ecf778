local files = require("nclua.files")
local luaunit = require("luaunit")
local plugins = require("nclua.plugins")
local process = require("nclua.process")
local scratch = require("scratch")
local tuner = require("nclua.tuner")

local function table_of_costs()
  return { Tree = { LL = 9, Simple = 12 }, Ring = { LL = 8, LL128 = 10, Simple = 11 } }
end

local function open()
  return assert(tuner.open(assert(plugins.file("tuner"))))
end

TestTuner = {}

function TestTuner.test_asks_and_steers()
  local plugin <close> = open()
  luaunit.assertEquals(plugin.name, "nclua")
  luaunit.assertEquals(plugin.abi_version, 6)
  local context <close> = assert(plugin:context({ ranks = 4 }))
  local before = plugin:report()
  local costs, channels = context:ask("all_reduce", 1 << 20, table_of_costs())
  luaunit.assertEquals(costs.Ring.LL, 8)
  luaunit.assertEquals(costs.PAT.Simple, -1)
  luaunit.assertEquals(channels, 0)
  plugin:force({ algorithm = "Tree", protocol = "Simple", channels = 2 })
  costs, channels = context:ask("all_reduce", 1 << 20, table_of_costs())
  luaunit.assertEquals({ costs.Tree.Simple, channels }, { 0, 2 })
  plugin:force({ collective = "all_reduce", algorithm = "PAT", protocol = "Simple" })
  costs, channels = context:ask("all_reduce", 1 << 20, table_of_costs())
  luaunit.assertEquals({ costs.PAT.Simple, channels }, { -1, 0 })
  plugin:release()
  local after = plugin:report()
  luaunit.assertEquals(after.calls - before.calls, 3)
  luaunit.assertEquals(after.forced - before.forced, 1)
  luaunit.assertEquals(after.unavailable - before.unavailable, 1)
end

-- The configuration is read once a process: with rules, in a process of its own.
local WITH_RULES = [[
  local tuner = require("nclua.tuner")
  local plugin <close> = assert(tuner.open(require("nclua.plugins").file("tuner")))
  local context <close> = assert(plugin:context({ ranks = 4 }))
  local function ask()
    local costs, channels = context:ask("all_reduce", 4096, { Tree = { LL = 9 } })
    io.write(("%g/%d "):format(costs.Tree.LL, channels))
  end
  ask()
  plugin:keep()
  ask()
  plugin:keep():release("all_reduce")
  ask()
]]

function TestTuner.test_keeps_the_library_choice_in_spite_of_rules()
  local folder <close> = scratch.folder()
  local rules = folder.path .. "/rules.csv"
  assert(files.write(rules, "allreduce,0,8192,tree,ll,3,-1,-1\n"))
  local result = assert(process.run({ os.getenv("NCLUA"), "-e", WITH_RULES },
    { env = { NCLUA_TUNER_RULES = rules }, timeout_s = 20 }))
  luaunit.assertEquals({ result.stdout, result.stderr }, { "0/3 9/0 0/3 ", "" })
end

function TestTuner.test_errors()
  local none, message, code = tuner.open("/nowhere/plugin.so")
  luaunit.assertNil(none)
  luaunit.assertStrContains(message, "/nowhere/plugin.so")
  luaunit.assertEquals(code, "no_library")
  local plugin <close> = open()
  luaunit.assertErrorMsgContains("'Tree'", plugin.force, plugin,
    { algorithm = "Star", protocol = "LL" })
  luaunit.assertErrorMsgContains("required", plugin.force, plugin, { algorithm = "Tree" })
  luaunit.assertErrorMsgContains("ranks", plugin.context, plugin, {})
  luaunit.assertErrorMsgContains("no plugin named 'x'", plugins.file, "x")
end

function TestTuner.test_handles()
  local plugin = open()
  local context = assert(plugin:context({ ranks = 2 }))
  plugin:close()
  plugin:close()
  luaunit.assertStrContains(tostring(plugin), "closed")
  luaunit.assertErrorMsgContains("closed plugin", plugin.report, plugin)
  luaunit.assertErrorMsgContains("closed plugin", context.ask, context, "reduce", 1, {})
  context:close()
  context:close()
  luaunit.assertErrorMsgContains("closed tuner context", context.ask, context, "reduce", 1,
    {})
  luaunit.assertErrorMsgContains("tuner.plugin expected", plugin.close, context)
  luaunit.assertErrorMsgContains("tuner.context expected", context.close, io.stdout)
  local kept = assert(open():context({ ranks = 2 }))
  collectgarbage()
  luaunit.assertNotNil(kept:ask("reduce", 1, {}))
end
