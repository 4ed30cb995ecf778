local critical_path = require("nclua.critical_path")
local luaunit = require("luaunit")

-- Two ranks, two sizes; the last cycle of the larger size has the slowest rank first.
local ROWS = {
  { rank = 0, size = 8, mode = "a", cycle = 0, t_us = 1, ok = true },
  { rank = 0, size = 8, mode = "a", cycle = 1, t_us = 5, ok = true },
  { rank = 0, size = 8, mode = "b", cycle = 0, t_us = 9, ok = true },
  { rank = 1, size = 8, mode = "a", cycle = 0, t_us = 3, ok = false },
  { rank = 1, size = 8, mode = "a", cycle = 1, t_us = 2, ok = true },
  { rank = 1, size = 8, mode = "b", cycle = 0, t_us = 7, ok = true },
}

TestCriticalPath = {}

function TestCriticalPath.test_slowest_rank_then_cycles()
  local cases = critical_path.cases(ROWS, { "size", "mode" })
  luaunit.assertEquals(#cases, 2)
  local first = cases[1]
  luaunit.assertEquals({ first.size, first.mode }, { 8, "a" })
  luaunit.assertEquals(first:slowest_of("t_us"), { 3, 5 })
  luaunit.assertEquals(first:slowest("t_us"),
    { median = 4, p95 = 5, min = 3, max = 5, cv_percent = 25, samples = 2 })
  luaunit.assertEquals(first:rate("ok"), 0.75)
  luaunit.assertEquals(cases[2]:slowest("t_us"),
    { median = 9, p95 = 9, min = 9, max = 9, cv_percent = 0, samples = 1 })
end

function TestCriticalPath.test_sibling_cases()
  local cases = critical_path.cases(ROWS, { "size", "mode" })
  luaunit.assertTrue(cases[1]:with({ mode = "b" }) == cases[2])
  luaunit.assertTrue(cases[2]:with({}) == cases[2])
  luaunit.assertErrorMsgContains("no such case", cases[1].with, cases[1], { mode = "c" })
end

function TestCriticalPath.test_p95_is_nearest_rank()
  local values = {}
  for i = 1, 20 do values[i] = i end
  luaunit.assertEquals(critical_path.statistic(values).p95, 19)
  values[21] = 21
  luaunit.assertEquals(critical_path.statistic(values).p95, 20)
end
