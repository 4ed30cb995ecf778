--- The interview's control by nccl-tests' own program, which a shell script plays here:
--- what it is asked for, what becomes of its table, and what its failures do.
local csv = require("nclua.csv")
local files = require("nclua.files")
local luaunit = require("luaunit")
local process = require("nclua.process")
local scratch = require("scratch")

local NCLUA = assert(os.getenv("NCLUA"), "NCLUA must name the program under test")

-- Each size twice, as -N 2 prints it; the time of the second cycle is one more.
-- luacheck: push ignore 631
local PROGRAM = [[#!/bin/sh
echo "$@" "$NCCL_DEBUG_FILE" >> "%s"
echo "# nThread 1 nGpus 2 minBytes 8192 maxBytes 1048576 step: 2(factor)"
echo "#"
echo "#                                                       out-of-place              in-place"
echo "#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong"
echo "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)"
for cycle in 0 1; do
  for size in 8192 16384 32768 65536 131072 262144 524288 1048576; do
    echo "$size $((size / 2)) half sum -1 $((size / 1024 + cycle)).5 1.0 1.0 %s 20.0 1.0 1.0 0"
  done
done
echo "# Out of bounds values : 0 OK"
exit %d
]]
-- luacheck: pop

local function run(folder, wrong, status)
  local program, log = folder .. "/all_reduce_perf", folder .. "/log"
  assert(files.write(program, PROGRAM:format(log, wrong, status)))
  assert(process.run({ "chmod", "+x", program }))
  local result = assert(process.run({ NCLUA, "scripts/interview.lua", "--root", folder,
    "--run-id", "r", "--cycles", 2, "--sections", "control", "--nccl-tests", program },
    { timeout_s = 60 }))
  return result, folder .. "/logs/interview_details/r", files.read(log)
end

TestControl = {}

function TestControl.test_rows_and_statistics()
  local folder <close> = scratch.folder()
  local result, dir, log = run(folder.path, 0, 0)
  luaunit.assertEquals(result.exit_code, 0, result.stderr)
  luaunit.assertStrContains(log,
    "-b 8K -e 1M -f 2 -g 2 -w 20 -n 100 -N 2 -c 1 -d half -a 3 " .. dir .. "/raw/nccl/")
  luaunit.assertStrContains(log, "-g 4")
  local raw = assert(csv.read(dir .. "/nccl_tests_raw.csv"))
  luaunit.assertEquals(#raw, 2 * 2 * 8)
  local first = assert(csv.read(dir .. "/nccl_tests_summary.csv"))[1]
  luaunit.assertEquals(first.size_bytes, 8192)
  luaunit.assertEquals(first.median_time_us, 9)
  luaunit.assertEquals(first.max_time_us, 9.5)
  luaunit.assertEquals(first.source, "nccl-tests")
  luaunit.assertStrContains(files.read(dir .. "/raw/nccl_tests_g2.stdout"), "# nThread 1")
end

function TestControl.test_a_wrong_element_fails_the_run()
  local folder <close> = scratch.folder()
  local result, dir = run(folder.path, 3, 0)
  luaunit.assertEquals(result.exit_code, 1)
  luaunit.assertStrContains(result.stderr, "32 of 32 contracts failed, the first: control")
  luaunit.assertFalse(files.exists(dir .. "/manifest.txt"))
end

function TestControl.test_its_failure_fails_the_run()
  local folder <close> = scratch.folder()
  local result, dir = run(folder.path, 0, 3)
  luaunit.assertEquals(result.exit_code, 1)
  luaunit.assertStrContains(result.stderr, "interview: nccl_tests_g2 failed (3)")
  luaunit.assertStrContains(result.stderr, "Out of bounds values : 0 OK")
  luaunit.assertTrue(files.exists(dir .. "/raw/nccl_tests_g2.stdout"))
end
