--- nclua tuner show and diff: ranges to the byte, of any plugin, with no GPU.
local decisions = require("nclua.decisions")
local files = require("nclua.files")
local luaunit = require("luaunit")
local process = require("nclua.process")
local scratch = require("scratch")

local NCLUA = assert(os.getenv("NCLUA"), "NCLUA must name the program under test")
local OTHER = assert(os.getenv("OTHER_TUNER"), "OTHER_TUNER must name the test's plugin")

local function tuner(env, ...)
  return assert(process.run({ NCLUA, "tuner", ... }, { env = env, timeout_s = 30 }))
end

TestDecisions = {}

function TestDecisions.test_show()
  local result = tuner({}, "show", OTHER, "--nodes", "2,1", "--ranks", "16,4")
  luaunit.assertEquals({ result.exit_code, result.stderr }, { 0, "" })
  for _, part in ipairs({
    "all_reduce, 16 ranks on 2 nodes\n",
    "all_reduce, 4 ranks on 1 nodes\n         4 B to   100000 B  Tree/LL, 4 channels",
    "    100001 B to     16 GiB  NCCL's own\n",
    "broadcast, 4 ranks on 1 nodes\n         4 B to  1048575 B  NCCL's own\n"
      .. "       1 MiB to     16 GiB  fails: the plugin returned 3\n",
    "reduce, 4 ranks on 1 nodes\n         4 B to     16 GiB  NCCL's own\n",
    "plugin 'other', tuner ABI 3\n",
  }) do
    luaunit.assertStrContains(result.stdout, part)
  end
end

function TestDecisions.test_diff()
  local result = tuner({}, "diff", OTHER, "nclua", "--collective", "all_reduce")
  luaunit.assertEquals(result.exit_code, 1, result.stderr)
  luaunit.assertEquals(result.stdout, "all_reduce, 8 ranks on 1 nodes\n"
    .. "         4 B to   100000 B  Tree/LL, 4 channels | NCCL's own\n")
  result = tuner({ NCLUA_TUNER_FORCE = "all_reduce:Tree/LL/4:0-100000" }, "diff", OTHER,
    "nclua", "--collective", "AllReduce")
  luaunit.assertEquals({ result.stdout, result.exit_code }, { "no difference\n", 0 })
end

function TestDecisions.test_rules_of_a_file()
  local folder <close> = scratch.folder()
  local path = folder.path .. "/r.csv"
  assert(files.write(path, "allreduce,23171,46340,ring,simple,-1,1,4,-1,-1\n"))
  local result = tuner({}, "show", path, "--ranks", 4, "--collective", "all_reduce")
  luaunit.assertStrContains(result.stdout, "     23171 B to    46340 B  Ring/Simple   "
    .. "instead of Ring/LL\n")
end

local USAGE = {
  { { "show" }, 2, "expected nclua tuner show PLUGIN" },
  { { "show", "nclua", "--ranks", "1,2" }, 2, "--ranks needs one number for each" },
  { { "show", "nclua", "--ranks", "1" }, 2, "--ranks: 1 ranks on 1 nodes" },
  { { "show", "nclua", "--nodes", "0" }, 2, "--nodes: 0 is not 1 to 16384" },
  { { "show", "nclua", "--preset", "abacus" }, 2, "unknown preset 'abacus'" },
  { { "show", "nclua", "--collective", "x" }, 2, "unknown collective 'x'" },
  { { "diff", "nclua" }, 2, "expected" },
  { { "steer", "nclua" }, 2, "expected" },
  { { "show", "/nowhere.so" }, 1, "/nowhere.so" },
}

function TestDecisions.test_usage()
  for _, case in ipairs(USAGE) do
    local result = tuner({}, table.unpack(case[1]))
    luaunit.assertEquals(result.exit_code, case[2], case[3])
    luaunit.assertStrContains(result.stderr, case[3])
  end
end

function TestDecisions.test_diff_of_ranges()
  local a = { { from = 4, to = 9, what = "x" }, { from = 10, to = 99, what = "y" } }
  local b = { { from = 4, to = 19, what = "x" }, { from = 20, to = 99, what = "z" } }
  luaunit.assertEquals(decisions.diff(a, b), {
    { from = 10, to = 19, a = "y", b = "x" }, { from = 20, to = 99, a = "y", b = "z" },
  })
  luaunit.assertEquals(decisions.diff(a, a), {})
end
