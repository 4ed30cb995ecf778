--- nclua.parse.nccl_tests: our own fixtures in the forms of nccl-tests 1.0 to 2.19.
local lenient_json = require("nclua.parse.lenient_json")
local luaunit = require("luaunit")
local nccl_tests = require("nclua.parse.nccl_tests")

local function read(name)
  local file <close> = assert(io.open("tests/fixtures/nccl_tests/" .. name, "rb"))
  return file:read("a")
end

local function parse(name) return nccl_tests.parse(read(name)) end

-- Reasons of the warnings, with their lines.
local function reasons(result)
  local list = {}
  for i, warning in ipairs(result.warnings) do
    list[i] = warning.line .. " " .. warning.why
  end
  return list
end

TestNcclTests = {}

function TestNcclTests.test_1_0()
  local result = parse("1.0-broadcast.txt")
  local run = result.runs[1]
  luaunit.assertEquals({ run.ranks, run.nodes, #run.rows }, { 2, 1, 2 })
  luaunit.assertEquals({ run.config.min_bytes, run.config.warmup_iters }, { 1024, 5 })
  local row = run.rows[2]
  luaunit.assertEquals({ row.root, row.redop, row.in_place }, { 0, nil, nil })
  luaunit.assertEquals({ row.out_of_place.time_us, row.out_of_place.error }, { 30, 0 })
  luaunit.assertEquals({ run.out_of_bounds, run.average_busbw_gbps }, { 0, 0.055 })
  luaunit.assertEquals(reasons(result), {})
end

function TestNcclTests.test_2_9_has_a_heading_without_values()
  local result = parse("2.9-alltoall.txt")
  local row = result.runs[1].rows[1]
  luaunit.assertEquals({ #row.tokens, row.redop, row.root }, { 11, nil, nil })
  luaunit.assertEquals({ row.in_place.time_us, row.in_place.error }, { 61, 1 })
  luaunit.assertNil(row.out_of_place.wrong)
  luaunit.assertEquals({ result.runs[1].complete, #result.warnings }, { true, 0 })
end

function TestNcclTests.test_2_13_behind_a_launcher()
  local result = parse("2.13.0-all-gather.txt")
  local run = result.runs[1]
  luaunit.assertEquals({ run.ranks, run.nodes, result.log_lines }, { 2, 2, 1 })
  luaunit.assertEquals({ run.rows[1].root, run.rows[1].in_place.busbw_gbps }, { -1, 15.04 })
  luaunit.assertEquals({ run.rows[1].cycle, run.rows[2].cycle }, { 0, 1 })
  luaunit.assertEquals(#result.warnings, 0)
end

function TestNcclTests.test_2_17_with_timestamps_and_a_failure()
  local result = parse("2.17.8-sendrecv-timestamps.txt")
  local run = result.runs[1]
  luaunit.assertEquals({ run.collective, run.version, run.library, run.json_path },
    { "sendrecv", "2.17.8", 22903, "out.json.0" })
  local last = run.rows[3]
  luaunit.assertEquals(last.timestamp, "2026-01-06 10:11:13")
  luaunit.assertEquals({ last.out_of_place.time_us, last.out_of_place.wrong }, { 1e7, 3 })
  luaunit.assertNil(last.in_place.wrong)
  luaunit.assertEquals(last.cycle, 0)
  luaunit.assertEquals(#run.failures, 2)
  luaunit.assertEquals({ run.status, run.out_of_bounds }, { "FAILED", 1 })
end

function TestNcclTests.test_2_19_with_iterations()
  local result = parse("2.19.6-per-iteration.txt")
  local rows = result.runs[1].rows
  luaunit.assertEquals({ #rows, #rows[1].tokens, rows[3].cycle }, { 3, 23, 1 })
  luaunit.assertEquals(rows[1].out_of_place, {
    time_us = 31.2, algbw_gbps = 33.61, busbw_gbps = 58.81, wrong = 0, min_us = 30.88,
    max_us = 45.12, p99_us = 45.12, cv_percent = 9.87,
  })
  luaunit.assertEquals(rows[1].in_place.cv_percent, 1.92)
  luaunit.assertEquals(rows[1].timestamp, "2026-07-01 01:02:03")
  luaunit.assertEquals(reasons(result), {})
end

function TestNcclTests.test_several_tables()
  local result = parse("2.18-hypercube-two-binaries.txt")
  luaunit.assertEquals(#result.runs, 2)
  local first, second = result.runs[1], result.runs[2]
  luaunit.assertEquals({ first.env, second.title }, { "NCCL_ALGO=Ring", "Ring with LL" })
  luaunit.assertEquals({ #first.rows[1].tokens, first.rows[1].root }, { 12, -1 })
  local half = first.rows[1].in_place
  luaunit.assertEquals({ half.cputime_us, half.time_us }, { 5.1, nil })
  luaunit.assertEquals({ first.complete, second.complete, second.rows[1].in_place },
    { true, false, nil })
  luaunit.assertEquals(reasons(result), {
    "12 rank 0 twice: a binary built without MPI under mpirun?",
    "16 a line that was not understood",
  })
  luaunit.assertEquals(result.ignored.samples,
    { { line = 13, text = "an application's own line" } })
end

function TestNcclTests.test_rows_in_pieces()
  local result = parse("2.12-cut-rows.txt")
  local rows = result.runs[1].rows
  luaunit.assertEquals({ #rows, result.log_lines }, { 2, 3 })
  luaunit.assertEquals(table.concat(rows[1].tokens, " "),
    "8 2 float sum 28.27 0.00 0.00 0e+00 18.26 0.00 0.00 0e+00")
  local wrong = rows[2].out_of_place.error
  luaunit.assertTrue(wrong ~= wrong)
  luaunit.assertNil(rows[2].in_place)
end

function TestNcclTests.test_json()
  for version = 1, 3 do
    local result = assert(nccl_tests.parse_json(read(("v%d.json"):format(version))))
    local run = result.runs[1]
    luaunit.assertEquals({ run.json_version, run.collective, run.library },
      { version, "all_reduce", 22903 })
    luaunit.assertEquals({ run.ranks, run.nodes, run.env }, { 2, 2, "NCCL_ALGO=Ring" })
    luaunit.assertEquals(run.config.iters, 3)
    luaunit.assertEquals(run.complete, version ~= 2)
    luaunit.assertEquals(#run.rows, version == 2 and 3 or 4)
    local row = run.rows[3]
    luaunit.assertEquals({ row.size_bytes, row.root, row.cycle }, { 1024, -1, 1 })
    luaunit.assertEquals({ row.out_of_place.time_us, row.in_place.wrong }, { 31.2, nil })
    luaunit.assertEquals(row.in_place.algbw_gbps, math.huge)
    local per = row.out_of_place
    if version > 1 then
      luaunit.assertEquals({ per.p50_us, per.times_us[3] }, { 31, 45 })
      luaunit.assertEquals(per.per_process_max_times_us[2][1], 30)
    end
    luaunit.assertEquals(per.skipped_iterations, version == 3 and 1 or nil)
  end
  local first = nccl_tests.parse_json(read("v1.json"))
  luaunit.assertEquals(first.runs[1].average_busbw_gbps, 2.25)
end

-- A run that was killed leaves a part of the file, of any length.
function TestNcclTests.test_json_cut_anywhere()
  local text = read("v3.json")
  local most = 0
  for length = 0, #text - 1 do
    local result, message = nccl_tests.parse_json(text:sub(1, length))
    if result then
      local run = result.runs[1]
      most = math.max(most, #run.rows)
      luaunit.assertEquals(run.complete, run.ended ~= nil)
      luaunit.assertStrContains(result.warnings[#result.warnings].why, "incomplete")
    else
      luaunit.assertStrContains(message, "byte ")
    end
  end
  luaunit.assertEquals(most, 4)
end

function TestNcclTests.test_lenient_json()
  for _, case in ipairs({
    { "[1, 2.5, -3e2, true, null, \"a\\u0041\\ud83d\\ude00\\n\"]",
      { 1, 2.5, -300.0, true, nil, "aA😀\n" } },
    { "{\"a\": {\"b\": [1, {\"c\": 2}, {\"d\": 3", { a = { b = { 1, { c = 2 } } } },
      "byte 34: the text ends in a value" },
    { "{\"a\": inf, \"b\": -inf}", { a = math.huge, b = -math.huge } },
    { "{\"a\" 1}", {}, "byte 6: a name without a value" },
    { '["\\u00", 1]', {}, "byte 2: an unknown escape" },
    { ("["):rep(200), nil, "byte 101: nested too deep" },
    { "", nil, "byte 1: no value" },
  }) do
    local value, problem = lenient_json.parse(case[1])
    if case[2] then luaunit.assertEquals(value, case[2], case[1]) end
    luaunit.assertEquals(problem, case[3], case[1])
  end
  luaunit.assertNil((nccl_tests.parse_json("[1]")))
end
