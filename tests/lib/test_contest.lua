--- Differences that are real, and those that are not.
local contest = require("nclua.contest")
local luaunit = require("luaunit")

TestContest = {}

-- What drifts, drifts for both: in pairs a gain of 5 % is seen through a drift of 50 %.
local DRIFTING = { 10, 11, 12, 13, 14, 15 }

local function scaled(list, factor)
  local copy = {}
  for i, x in ipairs(list) do copy[i] = x * factor end
  return copy
end

local CASES = {
  { "faster by pairs", DRIFTING, scaled(DRIFTING, 0.95), true, "faster" },
  { "slower by pairs", DRIFTING, scaled(DRIFTING, 1.05), true, "slower" },
  { "the same", DRIFTING, DRIFTING, true, "unclear" },
  { "mixed", { 10, 10, 10, 10, 10 }, { 9, 11, 9, 11, 10 }, true, "unclear" },
  { "drift hides it without pairs", DRIFTING, scaled(DRIFTING, 0.95), false, "unclear" },
  { "far apart without pairs", DRIFTING, scaled(DRIFTING, 0.5), false, "faster" },
  { "too few cycles", { 10, 10, 10, 10 }, { 5, 5, 5, 5 }, true, "unclear" },
}

function TestContest.test_verdicts()
  for _, case in ipairs(CASES) do
    local name, a, b, is_paired, verdict = table.unpack(case)
    local result = contest.compare(a, b, { is_paired = is_paired })
    luaunit.assertEquals(result.verdict, verdict, name)
    luaunit.assertTrue(result.low <= result.ratio and result.ratio <= result.high, name)
  end
end

function TestContest.test_ratio_is_of_times()
  local result = contest.compare(DRIFTING, scaled(DRIFTING, 0.5))
  luaunit.assertAlmostEquals(result.ratio, 2, 1e-12)
  luaunit.assertAlmostEquals(result.low, 2, 1e-12)
end

function TestContest.test_rank()
  local entries = {
    { name = "slow", times = { 20, 21, 22, 23, 24 } },
    { name = "twin", times = { 10, 11, 12, 13.5, 13 } },
    { name = "best", times = { 10, 11, 12, 13, 14 } },
    { name = "also", times = { 10, 11, 12, 13, 14 } },
  }
  local ranking, tied = contest.rank(entries)
  local names = {}
  for i, entry in ipairs(ranking) do names[i] = entry.name end
  luaunit.assertEquals(names, { "also", "best", "twin", "slow" })
  luaunit.assertEquals({ #tied, tied[1].name, tied[2].name }, { 2, "best", "twin" })
  luaunit.assertEquals(ranking[1].median, 12)
end
