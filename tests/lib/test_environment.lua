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
