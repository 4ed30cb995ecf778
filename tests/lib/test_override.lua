--- Verdicts on overrides: each witness alone can turn one down, and the reason is the root.
local luaunit = require("luaunit")
local override = require("nclua.override")

local ASKED = { algorithm = "Tree", protocol = "Simple", channels = 2 }
local BYTES = 64 << 20

-- What everybody says when all went well.
local function good()
  return {
    environment = {}, loaded = "TUNER/Plugin: Using nclua (v4)",
    calls = { { outcome = "forced" }, { outcome = "forced" } },
    selections = { { algorithm = "Tree", protocol = "Simple", channels = 2 } },
    grids = { 2 },
    against = { ratio = 0.5, low = 0.4, high = 0.6, verdict = "slower" },
  }
end

TestOverride = {}

function TestOverride.test_took_effect()
  local verdict = override.judge(ASKED, BYTES, good())
  luaunit.assertEquals({ verdict.took_effect, verdict.text }, { true, "took effect" })
  luaunit.assertEquals(#verdict.witnesses, 7)
  luaunit.assertEquals(verdict.witnesses[7].says,
    "2.00 x the time of the library's own choice (1.67 to 2.50)")
end

-- { what is different, its value, the verdict }
local CASES = {
  { "environment", { NCCL_ALGO = "Ring" },
    "ignored because the environment decides before a tuner: NCCL_ALGO=Ring" },
  { "calls", {}, "ignored because the plugin was not loaded" },
  { "calls", { { outcome = "forced" }, { outcome = "unavailable" } },
    "ignored because Tree/Simple/2 is not available to this communicator" },
  { "calls", { { outcome = "kept" } },
    "ignored because 67108864 bytes are outside the range of the override" },
  { "selections", { { algorithm = "Ring", protocol = "Simple", channels = 24 } },
    "ignored because the library did something else in spite of it" },
  { "selections", { { algorithm = "Tree", protocol = "Simple", channels = 24 } },
    "ignored because the library did something else in spite of it" },
  { "grids", { 24 }, "ignored because the library did something else in spite of it" },
  { "grids", { 2, 24 }, "ignored because the library did something else in spite of it" },
  { "backend", { algorithm = "Ring", protocol = "LL", channels = 2 },
    "ignored because the library did something else in spite of it" },
}

function TestOverride.test_every_witness_can_say_no()
  for i, case in ipairs(CASES) do
    local seen = good()
    seen[case[1]] = case[2]
    local verdict = override.judge(ASKED, BYTES, seen)
    luaunit.assertEquals({ verdict.took_effect, verdict.text }, { false, case[3] }, i)
  end
end

function TestOverride.test_without_a_witness_of_what_ran_nothing_is_proved()
  local seen = good()
  seen.selections, seen.grids = nil, nil
  local verdict = override.judge(ASKED, BYTES, seen)
  luaunit.assertEquals(verdict.text, "unproven: nobody saw what ran")
  seen.backend = { algorithm = "Tree", protocol = "Simple", channels = 2 }
  luaunit.assertTrue(override.judge(ASKED, BYTES, seen).took_effect)
end

function TestOverride.test_channels_that_were_not_asked_for_are_not_judged()
  local seen = good()
  seen.selections[1].channels, seen.grids = 24, { 24 }
  local asked = { algorithm = "Tree", protocol = "Simple", channels = 0 }
  luaunit.assertTrue(override.judge(asked, BYTES, seen).took_effect)
end

function TestOverride.test_unloaded_plugin()
  local seen = good()
  seen.loaded, seen.calls = nil, nil
  luaunit.assertEquals(override.judge(ASKED, BYTES, seen).text,
    "ignored because the plugin was not loaded")
  seen = good()
  seen.loaded = nil -- some versions do not say it
  luaunit.assertTrue(override.judge(ASKED, BYTES, seen).took_effect)
end
