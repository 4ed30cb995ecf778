--- The parts of perf that compute: sizes, bandwidths, printed numbers, data that is exact,
--- statistics, the journal, what the witness makes of a log.
local cases = require("perf.cases")
local collectives = require("perf.collectives")
local files = require("nclua.files")
local journal = require("perf.journal")
local luaunit = require("luaunit")
local number = require("perf.number")
local passes = require("perf.passes")
local result = require("perf.result")
local scratch = require("scratch")
local sweep = require("perf.sweep")
local types = require("perf.types")
local values = require("perf.values")
local witness = require("perf.witness")

TestNumbers = {}

-- As nccl-tests 2.19.6: the rounded text decides how many decimals there is room for.
function TestNumbers.test_time()
  local rows = { { 1.234, "1.23" }, { 99.999, "100.00" }, { 9999.99, "9999.99" },
    { 9999.996, "10000.0" }, { 99999.96, "100000" }, { 9999999, "9999999" },
    { 9999999.6, "1.0e+07" } }
  for _, row in ipairs(rows) do luaunit.assertEquals(number.time(row[1]), row[2]) end
end

function TestNumbers.test_bandwidth_and_wrong()
  local rows = { { 0.001, "0.00" }, { 999.99, "999.99" }, { 999.996, "1000.0" },
    { 9999.96, "10000" }, { 999999, "999999" }, { 1999999.9, "2e+06" } }
  for _, row in ipairs(rows) do luaunit.assertEquals(number.bandwidth(row[1]), row[2]) end
  luaunit.assertEquals(number.wrong(nil), "N/A")
  luaunit.assertEquals(number.wrong(1234567), "1.23457e+06")
end

TestSizes = {}

local FLOAT, HALF = types.find("float"), types.find("f16")

-- collective, requested bytes, ranks: size and count that nccl-tests prints.
function TestSizes.test_rounding()
  local rows = {
    { "all_reduce", 1001, 3, 1000, 250 }, { "sendrecv", 4, 3, 4, 1 },
    { "all_gather", 1000, 3, 960, 80 }, { "all_gather", 47, 3, 0, 0 },
    { "reduce_scatter", 1000, 3, 960, 80 }, { "all_to_all", 64, 2, 64, 8 },
    { "hypercube", 100, 4, 64, 4 }, { "gather", 31, 2, 0, 0 }, { "scatter", 32, 2, 32, 4 },
  }
  for _, row in ipairs(rows) do
    local counts = collectives.counts(collectives[row[1]], row[2], FLOAT, row[3])
    luaunit.assertEquals({ counts.bytes, counts.count }, { row[4], row[5] }, row[1])
  end
end

function TestSizes.test_bandwidth()
  local rows = { all_reduce = { 1000, 1500 }, all_gather = { 1000, 750 },
    reduce_scatter = { 1000, 750 }, broadcast = { 1000, 1000 }, reduce = { 1000, 1000 },
    all_to_all = { 1000, 750 }, gather = { 1000, 750 }, scatter = { 1000, 750 },
    sendrecv = { 1000, 1000 }, hypercube = { 750, 750 } }
  for name, wanted in pairs(rows) do
    local counts = collectives.counts(collectives[name], 1 << 20, FLOAT, 4)
    local us = (1 << 20) / 1e6
    local algbw, busbw = collectives.bandwidth(collectives[name], counts, FLOAT, 4, us)
    luaunit.assertAlmostEquals(algbw, wanted[1], 1e-9, name)
    luaunit.assertAlmostEquals(busbw, wanted[2], 1e-9, name)
  end
end

local function options(more)
  local opt = { minbytes = 8, maxbytes = 64, stepfactor = 2, stepbytes = 1, cycles = 1,
    ranks = 4, collectives = { "all_reduce" }, types = { FLOAT }, ops = { "sum" },
    roots = { 0 } }
  for key, value in pairs(more) do opt[key] = value end
  return opt
end

local function bytes_of(list)
  local all = {}
  for i, case in ipairs(list) do all[i] = case.requested_bytes end
  return all
end

function TestSizes.test_steps()
  luaunit.assertEquals(bytes_of(cases.all(options({}))), { 8, 16, 32, 64 })
  luaunit.assertEquals(bytes_of(cases.all(options({ stepfactor = 3 }))), { 8, 24 })
  luaunit.assertEquals(bytes_of(cases.all(options({ stepfactor = 1, stepbytes = 30 }))),
    { 8, 38 })
  luaunit.assertEquals(bytes_of(cases.all(options({ maxbytes = 8, cycles = 2 }))), { 8, 8 })
end

function TestSizes.test_order_and_repetition()
  local list = cases.all(options({ maxbytes = 8, types = { FLOAT, HALF }, roots = { 0, 1 },
    ops = { "sum", "max" }, collectives = { "reduce", "broadcast" }, cycles = 2 }))
  local names = {}
  for i, case in ipairs(list) do names[i] = case.name end
  luaunit.assertEquals(#names, 16 + 8, "a broadcast knows no operator")
  luaunit.assertEquals(names[2], "reduce float sum 0 1 8")
  luaunit.assertEquals(names[3], "reduce float sum 1 0 8")
  luaunit.assertEquals(names[24], "broadcast half none 1 1 8")
  local none, impossible = cases.all(options({ ranks = 6, collectives = { "hypercube" } }))
  luaunit.assertEquals({ #none, impossible }, { 0, { "hypercube" } })
end

TestValues = {}

-- In any order: the sum of all magnitudes, or the product, is still exact.
local function worst(op, type, ranks, i)
  local sum, product = 0, 1
  for rank = 0, ranks - 1 do
    local x = values.input(type, op, ranks, rank, 1)[i]
    luaunit.assertTrue(type.is_signed or x >= 0)
    sum, product = sum + math.abs(x) * (op == "mulsum" and values.scalar(rank) or 1),
      product * math.abs(x)
  end
  return op == "prod" and product or sum
end

function TestValues.test_no_partial_result_is_inexact()
  for _, type in ipairs(types.ALL) do
    for _, op in ipairs({ "sum", "mulsum", "prod", "avg" }) do
      for _, ranks in ipairs({ 1, 2, 3, 8, 100 }) do
        for i = 1, values.PERIOD, 10 do
          local what = ("%s %s %d"):format(type.name, op, ranks)
          luaunit.assertTrue(worst(op, type, ranks, i) <= type.exact, what)
        end
      end
    end
  end
end

-- Leaving out a rank, or exchanging two, changes the result somewhere.
function TestValues.test_every_rank_matters()
  for _, op in ipairs({ "sum", "prod", "max", "min", "avg", "mulsum" }) do
    local whole = values.reduced(HALF, op, 4, 1)
    for left_out = 0, 3 do
      local input, seen = values.input, false
      values.input = function(type, o, ranks, rank, seed)
        return input(type, o, ranks, rank == left_out and (rank + 1) % 4 or rank, seed)
      end
      local other = values.reduced(HALF, op, 4, 1)
      values.input = input
      for i in ipairs(whole) do seen = seen or whole[i] ~= other[i] end
      luaunit.assertTrue(seen, op .. " " .. left_out)
    end
  end
end

function TestValues.test_rounds_differ()
  local function input(rank, seed) return values.input(HALF, "sum", 4, rank, seed) end
  luaunit.assertNotEquals(input(1, 1), input(1, 2))
  luaunit.assertNotEquals(input(1, 1), input(2, 1))
end

function TestValues.test_tolerance_only_where_rounding_must_occur()
  for _, type in ipairs(types.ALL) do
    for _, op in ipairs({ "sum", "prod", "max", "min", "mulsum", "none" }) do
      luaunit.assertEquals(values.tolerance(type, op, 3), 0)
    end
    luaunit.assertEquals(values.tolerance(type, "avg", 4), 0)
    luaunit.assertEquals(values.tolerance(type, "avg", 3) > 0, type.roundoff ~= nil)
  end
  local u = 2.0 ^ -24
  luaunit.assertTrue(values.tolerance(FLOAT, "avg", 3) < 4.01 * u)
end

TestPasses = {}

function TestPasses.test_reasons()
  local opt = { stable = 1, max_passes = 8, max_seconds = 2 }
  luaunit.assertNil(passes.reason({ 10, 10, 10, 10 }, 0, opt), "too few to say")
  luaunit.assertStrMatches(passes.reason({ 10, 10, 10, 10, 10.01 }, 0, opt),
    "stable within .* %%")
  local noisy = { 10, 20, 30, 40, 50 }
  luaunit.assertNil(passes.reason(noisy, 1, opt))
  luaunit.assertEquals(passes.reason(noisy, 2, opt), "limit of 2 s")
  luaunit.assertEquals(passes.reason({ 1, 9, 2, 8, 3, 7, 4, 6 }, 1, opt),
    "limit of 8 passes")
end

TestResult = {}

local function row(rank, cycle, us, more)
  local one = { collective = "all_reduce", type = "float", redop = "sum", root = -1,
    requested_bytes = 4000, size_bytes = 4000, count = 1000, place = "out", run_cycle = 0,
    rank = rank, cycle = cycle, throughput_us = us, host_us = 1, wrong = rank, stop = "x" }
  for key, value in pairs(more or {}) do one[key] = value end
  return one
end

function TestResult.test_merging()
  local rows = { row(0, 0, 10), row(1, 0, 20), row(0, 1, 30), row(1, 1, 40) }
  local wanted = { [0] = 20, 25, 20, 30 } -- the median of two passes
  for average = 0, 3 do
    local one = result.of(rows, {}, { ranks = 2, average = average })
    luaunit.assertEquals(one.throughput_us, wanted[average])
    luaunit.assertEquals(one.algbw_gbps, 4 / wanted[average])
    luaunit.assertEquals({ one.wrong, one.passes, one.slowest_rank }, { 1, 2, 1 })
    luaunit.assertEquals(one.skew_percent, 50)
    luaunit.assertEquals(one.rank_us, "20.000 30.000")
    luaunit.assertNil(one.low_us, "no interval of two passes")
  end
end

function TestResult.test_unchecked_is_not_zero()
  local rows = { row(0, 0, 10), row(1, 0, 10) }
  for _, each in ipairs(rows) do each.wrong = nil end
  luaunit.assertNil(result.of(rows, {}, { ranks = 2, average = 1 }).wrong)
end

function TestResult.test_latency_and_throughput_are_different_columns()
  local rows = { row(0, 0, nil, { latency_us = 5 }) }
  local one = result.of(rows, {}, { ranks = 1, average = 1 })
  luaunit.assertEquals({ one.latency_us, one.throughput_us }, { 5, nil })
end

function TestResult.test_iterations()
  local samples = {}
  for i = 1, 100 do samples[i] = i == 1 and 1000 or 10 end
  local few = result.device(samples)
  luaunit.assertEquals({ few.device_first_us, few.device_us }, { 1000, 10 })
  luaunit.assertNil(few.device_p99_us, "99 samples")
  samples[101] = 20
  luaunit.assertEquals(result.device(samples).device_p99_us, 10)
  luaunit.assertNil(result.device({ 1, 2, 3 }).device_p90_us)
end

function TestResult.test_the_slowest_rank_of_each_iteration()
  local rows = {}
  for rank = 0, 1 do
    for i = 1, 3 do
      rows[#rows + 1] = { rank = rank, iteration = i, device_us = (rank + i) % 3 + 1 }
    end
  end
  luaunit.assertEquals(result.slowest(rows), { 3, 3, 2 })
end

function TestResult.test_regret()
  local function one(bytes, us, type)
    return { collective = "all_reduce", type = type or "float", redop = "sum", ranks = 2,
      root = -1, size_bytes = bytes, throughput_us = us }
  end
  local list = { one(8, 12), one(8, 10), one(16, 9), one(32, 20), one(8, 1, "half") }
  result.add_regret(list, { one(32, 16) })
  luaunit.assertEquals(list[1].best_us, 9, "a larger message was faster")
  luaunit.assertAlmostEquals(list[1].regret_percent, 100 / 3, 1e-9)
  luaunit.assertEquals(list[3].regret_percent, 0)
  luaunit.assertEquals(list[4].regret_percent, 25, "against an earlier run")
  luaunit.assertEquals(list[5].regret_percent, 0, "another type")
end

TestJournal = {}

function TestJournal.test_it_brings_back_what_was_written()
  local folder <close> = scratch.folder()
  assert(files.make_folder(folder.path .. "/raw"))
  local row_1 = { us = 0.1 + 0.2, n = 3, text = 'a"\n{' }
  local rows = { { rank = 1, section = "perf", row = row_1 } }
  local one = journal.create(folder.path, { "-b", "8" })
  one:add("first", rows)
  one:add("second", rows)
  one:close()
  local path = folder.path .. "/" .. journal.FILE
  local text = assert(files.read(path))
  assert(files.write(path, text .. '{"rank":1,"section":"perf","row":{"us":1}}\n{"ra'))
  local content = assert(journal.read(folder.path))
  luaunit.assertEquals(content.arguments, { "-b", "8" })
  luaunit.assertEquals(content.cases, { first = rows, second = rows })
  one = journal.continue(folder.path, content)
  luaunit.assertEquals(files.read(path), text, "half a case is cut off")
  one:add("third", rows)
  one:close()
  luaunit.assertEquals(journal.read(folder.path).cases.third, rows)
  luaunit.assertNil((journal.read(folder.path .. "/none")))
end

function TestJournal.test_arguments()
  local given = { "-b8", "--run-id", "x", "--run-id=y", "-e", "9" }
  luaunit.assertEquals(sweep.remembered(given), { "-b8", "-e", "9" })
  luaunit.assertEquals(sweep.arguments({ "-b8" }), { "-b8" })
  local args, message = sweep.arguments({ "--resume", "x", "-b8" })
  luaunit.assertNil(args)
  luaunit.assertStrContains(message, "no other option")
end

TestWitness = {}

local LOG = [[
vm:1:1 [0] NCCL INFO NCCL version 2.28.3+cuda13.0
vm:1:1 [0] NCCL INFO AllReduce: 4000 Bytes -> Algo RING proto LL channel{Lo..Hi}={0..3}
vm:1:1 [0] NCCL INFO AllGather: 64 Bytes -> Algo RING proto SIMPLE channel{Lo..Hi}={0..0}
vm:1:1 [0] NCCL INFO AllReduce: 8 Bytes -> Algo RING proto LL channel{Lo..Hi}={0..0}
vm:1:1 [0] NCCL INFO AllReduce: 8 Bytes -> Algo TREE proto LL channel{Lo..Hi}={0..0}
]]

function TestWitness.test_a_log()
  local folder <close> = scratch.folder()
  assert(files.make_folder(folder.path .. "/raw/nccl"))
  assert(files.write(folder.path .. "/raw/nccl/witness_vm_1.log", LOG))
  local known = witness.read(folder.path, 4, "NVIDIA H200")
  local function explained(collective, count, more)
    local one = { collective = collective, type = "float", count = count }
    for key, value in pairs(more or {}) do one[key] = value end
    known:explain(one)
    return { one.algorithm, one.protocol, one.channels, one.known_from }
  end
  luaunit.assertEquals(explained("all_reduce", 1000), { "Ring", "LL", 4, "log" })
  luaunit.assertEquals(explained("all_gather", 16), { "Ring", "Simple", 1, "log" })
  luaunit.assertEquals(explained("all_reduce", 16), {}, "nothing is known")
  luaunit.assertEquals(explained("all_reduce", 2), {}, "the lines contradict each other")
  luaunit.assertEquals(explained("broadcast", 1000), {})
  luaunit.assertEquals(explained("all_reduce", 1000, { algorithm = "Tree", protocol = "LL",
    channels = 2, known_from = "backend" }), { "Tree", "LL", 2, "backend" })
end
