local environment = require("nclua.environment")
local luaunit = require("luaunit")
local process = require("nclua.process")
local scratch = require("scratch")

local function as_table(facts)
  local values = {}
  for _, fact in ipairs(facts) do values[fact[1]] = fact[2] end
  return values
end

TestEnvironment = {}

function TestEnvironment.test_host()
  local facts = as_table(environment.host())
  local uname = assert(process.run({ "uname", "-n" })).stdout:match("[^\n]*")
  luaunit.assertEquals(facts.hostname, uname)
  for _, name in ipairs({ "kernel", "cpu", "cpus_allowed", "memory" }) do
    luaunit.assertNotEquals(facts[name], "unknown", name)
  end
end

function TestEnvironment.test_devices()
  local facts = as_table(environment.devices())
  luaunit.assertEquals(facts.backend, os.getenv("NCLUA_BACKEND"))
  luaunit.assertStrMatches(facts.nccl_version, "%d+%.%d+%.%d+")
  luaunit.assertStrContains(facts["device.0"], "multiprocessors")
end

function TestEnvironment.test_variables()
  local script = [[for _, fact in ipairs(require("nclua.environment").variables()) do
    print(fact[1], fact[2]) end]]
  local result = assert(process.run({ os.getenv("NCLUA"), "-e", script }, { clean = true,
    env = { NCCL_ALGO = "Ring", NCLUA_X = "a=b", CUDA_Y = "", XNCCL_Z = 1 } }))
  luaunit.assertEquals(result.stdout,
    "env.CUDA_Y\t\nenv.NCCL_ALGO\tRing\nenv.NCLUA_X\ta=b\n", result.stderr)
end

function TestEnvironment.test_cpu_of_others()
  local first = assert(environment.cpu_use())
  local stop = os.clock() + 0.3
  while os.clock() < stop do end -- luacheck: ignore 542
  local last = assert(environment.cpu_use())
  luaunit.assertTrue(last.own - first.own >= 25 and last.busy > first.busy)
  local percent = environment.cpu_of_others(first, last)
  luaunit.assertTrue(percent >= 0 and percent <= 100)
  local zero = { busy = 100, idle = 10, own = 5 }
  for _, case in ipairs({ { 80, 20, 50, 30 }, { 50, 50, 50, 0 }, { 10, 0, 20, 0 } }) do
    luaunit.assertEquals(environment.cpu_of_others(zero, { busy = 100 + case[1],
      idle = 10 + case[2], own = 5 + case[3] }), case[4])
  end
  luaunit.assertNil(environment.cpu_of_others(zero, zero))
  luaunit.assertNil(environment.cpu_of_others(nil, zero))
end

function TestEnvironment.test_command_line()
  luaunit.assertStrContains(environment.command_line(), "tests/run.lua")
end

function TestEnvironment.test_source_commit()
  local folder <close> = scratch.folder()
  luaunit.assertEquals(environment.source_commit(""), "unavailable")
  luaunit.assertEquals(environment.source_commit(folder.path), "unavailable")
  local function git(...) return process.run({ "git", "-C", folder.path, ... }) end
  if not git("init", "-q") then luaunit.skip("no git") end
  luaunit.assertEquals(environment.source_commit(folder.path), "unavailable")
  git("-c", "user.name=x", "-c", "user.email=x@x", "commit", "--allow-empty", "-m", "x")
  local commit = git("rev-parse", "HEAD").stdout:match("%x+")
  luaunit.assertEquals(environment.source_commit(folder.path), commit)
end
