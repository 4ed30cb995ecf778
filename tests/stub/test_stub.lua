--- What the cuda backend says when something is missing, told by a fresh nclua.
local luaunit = require("luaunit")
local process = require("nclua.process")

local eq, contains = luaunit.assertEquals, luaunit.assertStrContains

local NCLUA = assert(os.getenv("NCLUA"))

local function run(script, env)
  local argv = { NCLUA, "-e", script }
  return assert(process.run(argv, { env = env, timeout_s = 60, stderr = "capture" }))
end

TestMissing = {}

function TestMissing.test_driver()
  local result = run('print(require("nclua.cuda").devices())',
    { NCLUA_CUDA_LIB = "/dev/null/libcuda.so.1" })
  contains(result.stdout, "cannot open CUDA driver: /dev/null/libcuda.so.1")
  contains(result.stdout, "no_library")
end

function TestMissing.test_not_a_driver()
  local result = run('print(require("nclua.cuda").devices())',
    { NCLUA_CUDA_LIB = "libm.so.6" })
  contains(result.stdout, "lacks 'cuInit'")
  contains(result.stdout, "driver_too_old")
end

function TestMissing.test_kernels_are_announced_once()
  local result = run([[
    local cuda = require("nclua.cuda")
    local x <close> = cuda.buffer("f16", 100):pattern()
    print(x:compare(x), x:get(5), x:pattern { start = 3, step = 0 }:compare(3))
  ]], { NCLUA_NVRTC_LIB = "/dev/null/none", XDG_CACHE_HOME = "/dev/null/none" })
  eq(result.stdout, "0\t4.0\t0\n")
  local _, count = result.stderr:gsub("no kernels on this GPU", "")
  eq(count, 1)
  contains(result.stderr, "/dev/null/none")
end

function TestMissing.test_kernels_of_the_cache_need_no_compiler()
  local script = 'require("nclua.cuda").buffer("f16", 100):pattern()'
  local first = run(script)
  luaunit.skipIf(first.stderr:find("no kernels"), first.stderr)
  eq(first.stderr, "")
  eq(run(script, { NCLUA_NVRTC_LIB = "/dev/null/none" }).stderr, "")
end

TestProfiler = {}

local RANGES = [[
  local cuda = require("nclua.cuda")
  cuda.range("outer", function() cuda.range("inner", function() end) end)]]

function TestProfiler.test_ranges_are_told()
  local result = run(RANGES, { NVTX_INJECTION64_PATH = os.getenv("NCLUA_STUB_NVTX") })
  eq(result.stderr, "push outer\npush inner\npop\npop\n")
end

function TestProfiler.test_without_one_or_with_a_broken_one()
  for _, path in ipairs({ "", "/dev/null", "libm.so.6" }) do
    local result = run(RANGES, { NVTX_INJECTION64_PATH = path })
    eq({ result.ok, result.stderr }, { true, "" })
  end
end
