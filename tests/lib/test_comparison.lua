--- Verdicts on synthetic runs, whose truth is known.
local comparison = require("nclua.comparison")
local comparison_text = require("nclua.comparison_text")
local luaunit = require("luaunit")

local CASES, CYCLES, PAIRS = 24, 12, 20
local START = math.log(1.43) / 2 -- two starts differ by 1.43 times at most, as seen on GPUs

local function normal()
  return math.sqrt(-2 * math.log(1 - math.random())) * math.cos(2 * math.pi * math.random())
end

-- Times of one start: noise of each cycle, rare outliers, a drift while it lasts, and what
-- the start itself is off by.
local function samples(centre, count, start)
  local list, slope = {}, 0.05 * normal()
  for i = 1, count do
    local outlier = math.random() < 0.05 and 3 or 1
    list[i] = centre * outlier * math.exp(start + 0.1 * normal() + slope * i / count)
  end
  return list
end

-- `scale(c)`: by what case c differs.
local function new_run(options)
  local run = { run = { chapter = "c", run_id = "r", backend = "cuda", nclua_version = "1",
    hostname = "h" }, facts = {}, options = {}, cases = {}, folder = "f" }
  for c = 1, CASES do
    run.cases[c] = { section = "s", world_size = 4, case = "bytes=" .. c, metric = "t_us",
      all_correct = true, times_valid = true,
      samples = samples(10 * c * (options.scale and options.scale(c) or 1),
        options.cycles or CYCLES, START * (2 * math.random() - 1)) }
  end
  return run
end

local function verdicts(result)
  local count = { faster = 0, slower = 0 }
  for _, row in ipairs(result.rows) do
    count[row.verdict] = (count[row.verdict] or 0) + 1
  end
  return count
end

TestComparison = {}

function TestComparison.setUp()
  math.randomseed(7)
end

function TestComparison.test_the_same_twice_has_no_verdict()
  for pair = 1, PAIRS do
    local result = comparison.times(new_run({}), new_run({}))
    luaunit.assertEquals(result.tested, CASES)
    luaunit.assertEquals(verdicts(result)["no evidence"], CASES, "pair " .. pair)
  end
end

function TestComparison.test_many_starts_of_the_same_have_no_verdict()
  for pair = 1, PAIRS do
    local sides = { {}, {} }
    for _, side in ipairs(sides) do
      for i = 1, 8 do side[i] = new_run({ cycles = 5 }) end
    end
    local result = comparison.times(comparison.pool(sides[1]), comparison.pool(sides[2]))
    luaunit.assertTrue(result.is_pooled)
    luaunit.assertEquals(result.margin, 0.05)
    luaunit.assertEquals(verdicts(result)["no evidence"], CASES, "pair " .. pair)
  end
end

-- Odd cases are three times slower, the tenth four times faster, the others the same.
local function scale(c)
  if c == 10 then return 1 / 4 end
  return c % 2 == 1 and 3 or 1
end

function TestComparison.test_verdicts_follow_the_truth()
  for pair = 1, PAIRS do
    local result = comparison.times(new_run({}), new_run({ scale = scale }))
    local found = 0
    for c, row in ipairs(result.rows) do
      local truth = c == 10 and "faster" or c % 2 == 1 and "slower" or "no evidence"
      if row.verdict == truth then
        found = found + 1
      else
        luaunit.assertEquals(row.verdict, "no evidence", pair .. ", " .. c)
      end
      luaunit.assertTrue(row.low <= row.ratio and row.ratio <= row.high)
    end
    luaunit.assertTrue(found >= 0.75 * CASES, ("pair %d: %d"):format(pair, found))
  end
end

function TestComparison.test_many_starts_show_a_smaller_difference()
  local sides = { {}, {} }
  for i = 1, 10 do
    sides[1][i] = new_run({ cycles = 5 })
    sides[2][i] = new_run({ cycles = 5, scale = function() return 1.8 end })
  end
  local one = comparison.times(sides[1][1], sides[2][1], { margin = 1 })
  luaunit.assertEquals(verdicts(one).slower, 0)
  local many = comparison.times(comparison.pool(sides[1]), comparison.pool(sides[2]))
  luaunit.assertTrue(verdicts(many).slower > CASES / 2)
end

function TestComparison.test_too_few_samples_say_so()
  local a = new_run({ cycles = 3 })
  local b = new_run({ cycles = 3, scale = function() return 9 end })
  local result = comparison.times(a, b)
  luaunit.assertEquals(verdicts(result)["no evidence"], CASES)
  -- 2 / 3432 <= 0.05 / 24 < 2 / 924
  luaunit.assertEquals(comparison.samples_needed(result), 7)
  local text = table.concat(comparison_text.remarks(result, "B"), "\n")
  luaunit.assertStrContains(text, "fewer than 7 samples")
end

function TestComparison.test_what_is_not_compared()
  local a, b = new_run({}), new_run({ scale = function() return 9 end })
  a.cases[1].all_correct = false
  b.cases[2].times_valid = false
  b.cases[3].samples = { 1 }
  a.cases[4].samples[1] = 0
  b.cases[5].case = "another"
  local result = comparison.times(a, b)
  luaunit.assertEquals(result.tested, CASES - 5)
  luaunit.assertEquals(result.rows[1].verdict, "wrong results")
  luaunit.assertEquals(result.rows[2].verdict, "times invalid")
  luaunit.assertEquals(result.rows[3].verdict, "no evidence")
  luaunit.assertEquals(result.rows[4].verdict, "no evidence")
  luaunit.assertEquals(result.only_a, { "s 4 bytes=5 t_us" })
  luaunit.assertEquals(result.only_b, { "s 4 another t_us" })
end

function TestComparison.test_a_drift_within_a_run_is_no_difference()
  local a, b = new_run({}), new_run({ scale = function() return 1.6 end })
  for i = 7, CYCLES do -- it has become eight times slower halfway
    b.cases[1].samples[i] = b.cases[1].samples[i] * 8
  end
  local result = comparison.times(a, b, { margin = 0 })
  luaunit.assertTrue(result.rows[1].low > 1)
  luaunit.assertEquals(result.rows[1].verdict, "no evidence")
  luaunit.assertTrue(verdicts(result).slower > 0)
end

function TestComparison.test_a_busy_cpu_has_no_verdicts()
  local a, b = new_run({}), new_run({ scale = function() return 9 end })
  a.run.backend, b.run.backend = "cpu", "cpu"
  for _, case in ipairs({ { false, false }, { "3", true }, { "40", false } }) do
    a.facts = { { "cpu_of_others_percent", "0" } }
    b.facts = case[1] and { { "cpu_of_others_percent", case[1] } } or {}
    local result = comparison.times(a, b)
    luaunit.assertEquals(verdicts(result).slower > CASES / 2, case[2])
    luaunit.assertEquals(verdicts(result).slower > 0, case[2])
    luaunit.assertEquals(result.busy == nil, case[2])
    local forced = comparison.times(a, b, { margin = 1 })
    luaunit.assertTrue(verdicts(forced).slower > CASES / 2)
  end
end

function TestComparison.test_settings_that_differ()
  local a, b = new_run({}), new_run({})
  a.facts = { { "nccl_version", "2.28.3" }, { "cpu", "x" } }
  b.facts = { { "nccl_version", "2.29.1" }, { "cpu", "x" }, { "env.NCCL_PROTO", "LL" } }
  a.options = { { "cycles", "10" }, { "run_id", "a" } }
  b.options = { { "cycles", "20" }, { "run_id", "b" } }
  luaunit.assertEquals(comparison.settings({ a, b }), {
    { kind = "machine", name = "nccl_version", values = { "2.28.3", "2.29.1" } },
    { kind = "option", name = "cycles", values = { "10", "20" } },
    { kind = "variable", name = "NCCL_PROTO", values = { [2] = "LL" } },
  })
end
