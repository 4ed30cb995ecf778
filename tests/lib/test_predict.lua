--- Predictions from presets: what is printed agrees with the model, and bad input is named.
local luaunit = require("luaunit")
local cost_model = require("nclua.cost_model")
local explain = require("nclua.explain")
local presets = require("nclua.presets")
local process = require("nclua.process")

local NCLUA = assert(os.getenv("NCLUA"))

local function predict(...) return assert(process.run({ NCLUA, "predict", ... }, {})) end

TestPredict = {}

function TestPredict.test_every_preset_has_a_model()
  for _, name in ipairs(presets.names()) do
    for _, nodes in ipairs({ 1, 2, 16384 }) do
      local model = assert(cost_model.model(assert(presets.system(name, nodes, "2.28.3"))))
      for _, collective in ipairs(cost_model.names.COLLECTIVES) do
        luaunit.assertNotNil(cost_model.select(model, collective, 1 << 20), name)
      end
    end
  end
end

function TestPredict.test_published_time_of_eight_h100()
  local system = assert(presets.system("dgx-h100", 1, "2.21.5"))
  local model = assert(cost_model.model(system))
  local time = cost_model.time(model, "all_reduce", "Ring", "Simple", 805306368)
  luaunit.assertEquals(("%.6f"):format(time), "3970.683594")
end

function TestPredict.test_explanation_ends_in_the_time()
  local model = assert(cost_model.model(assert(presets.system("dgx-h100", 4, "2.28.3"))))
  local choice = assert(cost_model.select(model, "all_reduce", 64 << 20))
  local ranking = explain.ranking(model, choice.costs)
  luaunit.assertEquals(ranking[1].algorithm, choice.algorithm)
  luaunit.assertTrue(ranking[1].time_us <= ranking[2].time_us)
  local lines = explain.cell(model, "all_reduce", choice.algorithm, choice.protocol,
    64 << 20)
  luaunit.assertStrContains(lines[1], ("%.2f us = latency"):format(choice.time_us))
  lines = explain.cell(model, "all_reduce", "PAT", "Simple", 4)
  luaunit.assertStrContains(lines[1], "PAT/Simple is off")
end

function TestPredict.test_command()
  local result = predict("--preset", "dgx-h100", "--nodes", "1,64", "--explain")
  luaunit.assertEquals(result.exit_code, 0, result.stderr)
  luaunit.assertStrContains(result.stdout, "nodes: 64, ranks: 512")
  luaunit.assertStrContains(result.stdout, "would flip it: ")
  for _, case in ipairs({
    { { "--preset", "dgx" }, 1, "unknown preset 'dgx'" },
    { { "--nodes", "0" }, 1, "0 nodes: expected 1 to 16384" },
    { { "--collective", "barrier" }, 1, "unknown collective 'barrier'" },
    { { "--version", "2.5" }, 1, "older than" },
    { { "--algo", "star" }, 1, "NCCL_ALGO: unknown name" },
    { { "--algo", "collnetdirect" }, 1, "no algorithm/protocol available" },
    { { "--nodes", "x" }, 2, "expected an integer" },
  }) do
    local bad = predict(table.unpack(case[1]))
    luaunit.assertEquals(bad.exit_code, case[2], table.concat(case[1], " "))
    luaunit.assertStrContains(bad.stderr, case[3])
  end
end
