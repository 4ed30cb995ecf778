--- perf over nccl-tests' own program: a stand-in that prints a table like its.
local csv = require("nclua.csv")
local files = require("nclua.files")
local luaunit = require("luaunit")
local process = require("nclua.process")
local scratch = require("scratch")

local NCLUA = assert(os.getenv("NCLUA"), "NCLUA must name the program under test")

local function run(root, ...)
  local result = assert(process.run({ NCLUA, "scripts/perf.lua", "--root", root, "--run-id",
    "r", "-n", 5, ... }, { timeout_s = 120 }))
  return result, root .. "/logs/perf/r"
end

local function succeed(result)
  luaunit.assertEquals(result.exit_code, 0, result.stderr)
end

TestPerfProgram = {}

-- Prints a table like nccl-tests', and its arguments; ends with the status.
local function program(folder, wrong, status)
  local path = folder .. "/all_reduce_perf"
  local row = "%12d %12d float sum -1 %s 1.00 1.00 0 %s 2.00 2.00 %d"
  assert(files.write(path, ([[#!/bin/sh
echo "# arguments: $*" >"%s/arguments"
echo "# nThread 1 nGpus 2 minBytes 8 maxBytes 16 step: 2(factor) warmup iters: 1 iters: 5"
echo "#  Rank  0 Group  0 Pid 1 on box device 0 [0000:01:00] A GPU"
echo "#  Rank  1 Group  0 Pid 1 on box device 1 [0000:02:00] A GPU"
echo "# size count type redop root time algbw busbw #wrong time algbw busbw #wrong"
echo "%s"
echo "%s"
echo "# Out of bounds values : 0 OK"
echo "# Avg bus bandwidth    : 1.0"
exit %d
]]):format(folder, row:format(8, 2, "10.5", "9.5", 0),
    row:format(16, 4, "11.5", "8.5", wrong), status)))
  assert(process.run({ "chmod", "+x", path }))
  return path
end

function TestPerfProgram.test_nccl_tests_own_program()
  local folder <close> = scratch.folder()
  local path = program(folder.path, 0, 0)
  local result, dir = run(folder.path, "-b", 8, "-e", 16, "-f", 2, "-g", 2, "-a", 3,
    "--nccl-tests", path)
  succeed(result)
  luaunit.assertStrContains(files.read(folder.path .. "/arguments"),
    "-b 8 -e 16 -g 2 -n 5 -w 1 -m 1 -c 1 -d float -o sum -r 0 -a 3 -f 2")
  luaunit.assertStrContains(result.stdout, "# all_reduce, 2 ranks on box, A GPU")
  local rows = assert(csv.read(dir .. "/results.csv"))
  luaunit.assertEquals(#rows, 4)
  local times = {}
  for _, row in ipairs(rows) do times[row.size_bytes .. row.place] = row.throughput_us end
  luaunit.assertEquals(times, { ["8out"] = 10.5, ["8in"] = 9.5, ["16out"] = 11.5,
    ["16in"] = 8.5 })
  luaunit.assertEquals(rows[1].known_from, nil)
end

function TestPerfProgram.test_the_layout_of_its_own_program_is_its_own()
  local folder <close> = scratch.folder()
  program(folder.path, 0, 0)
  local result = run(folder.path, "-b", 8, "-e", 16, "-f", 2, "-g", 2, "--layout",
    "nccl-tests", "--nccl-tests", folder.path) -- the folder that has it
  succeed(result)
  luaunit.assertStrMatches(result.stdout,
    "# nThread 1 nGpus 2.*# Avg bus bandwidth    : 1.0\n")
end

function TestPerfProgram.test_its_failures()
  local folder <close> = scratch.folder()
  local result = run(folder.path, "-g", 2, "--nccl-tests", program(folder.path, 3, 0))
  luaunit.assertEquals(result.exit_code, 1)
  luaunit.assertStrContains(result.stderr, "1 of 4 contracts failed")
  local other <close> = scratch.folder()
  result = run(other.path, "-g", 2, "--nccl-tests", program(other.path, 0, 3))
  luaunit.assertEquals(result.exit_code, 1)
  luaunit.assertStrContains(result.stderr, "nccl-tests failed (3), 2 rows")
  local third <close> = scratch.folder()
  result = run(third.path, "-g", 2, "--nccl-tests", third.path)
  luaunit.assertStrContains(result.stderr, "no program '")
end
