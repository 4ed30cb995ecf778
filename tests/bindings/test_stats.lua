local fuzz = require("fuzz")
local luaunit = require("luaunit")
local stats = require("nclua.stats")

local NAN = 0 / 0

--- Functions of one sample, with the arguments they need after it.
local REDUCERS = {
  mean = {}, median = {}, mad = {}, min = {}, max = {}, geometric_mean = {}, summary = {},
  cv_percent = {}, stdev = { "sample" }, percentile = { 0.5, "linear" },
  bootstrap_median = {},
}

local function call(name, x)
  return stats[name](x, table.unpack(REDUCERS[name]))
end

TestValues = {}

function TestValues.test_answers()
  local cases = {
    { "mean", { { 1, 2, 6 } }, 3 },
    { "median", { { 4, 1, 3, 2 } }, 2.5 },
    { "mad", { { 1, 1, 2, 2, 4, 6, 9 } }, 1 },
    { "stdev", { { 2, 4, 4, 4, 5, 5, 7, 9 }, "population" }, 2 },
    { "stdev", { { 1, 3 }, "sample" }, math.sqrt(2) },
    { "cv_percent", { { 2, 4, 4, 4, 5, 5, 7, 9 } }, 40 },
    { "cv_percent", { { 0 } }, 0 },
    { "percentile", { { 1, 2, 3, 4 }, 0.95, "nearest_rank" }, 4 },
    { "percentile", { { 4, 3, 2, 1 }, 0.5, "nearest_rank" }, 2 },
    { "percentile", { { 4, 3, 2, 1 }, 0.5, "linear" }, 2.5 },
    { "percentile", { { 7, 5 }, 0, "nearest_rank" }, 5 },
    { "percentile", { { 7, 5 }, 1, "linear" }, 7 },
    { "sum", { {} }, 0 },
    { "sum", { { 1, 1e100, 1, -1e100 } }, 2 },
    { "min", { { 3, -1, 2 } }, -1 },
    { "max", { { 3, -1, 2 } }, 3 },
    { "geometric_mean", { { 1, 4 } }, 2 },
  }
  for _, case in ipairs(cases) do
    local name, arguments, wanted = table.unpack(case)
    luaunit.assertAlmostEquals(stats[name](table.unpack(arguments)), wanted, 1e-14)
    local x = stats.vector(arguments[1])
    luaunit.assertAlmostEquals(x[name](x, table.unpack(arguments, 2)), wanted, 1e-14)
  end
end

function TestValues.test_empty_raises()
  for name in pairs(REDUCERS) do
    luaunit.assertErrorMsgContains("empty", call, name, {})
    luaunit.assertErrorMsgContains("empty", call, name, stats.vector())
  end
  luaunit.assertErrorMsgContains("#2", stats.mann_whitney, { 1 }, {})
end

function TestValues.test_nan_comes_out()
  for name in pairs(REDUCERS) do
    local result = call(name, { 1, NAN, 2 })
    if name == "summary" then result = result.p95 end
    luaunit.assertNaN(result)
  end
  luaunit.assertNaN(stats.stdev({ 1 }, "sample"))
end

function TestValues.test_input_is_not_changed()
  local list = { 5, 3, 4, 1, 2 }
  local x = stats.vector(list)
  for name in pairs(REDUCERS) do
    call(name, x)
    call(name, list)
  end
  luaunit.assertEquals(list, { 5, 3, 4, 1, 2 })
  luaunit.assertEquals(x:to_table(), { 5.0, 3.0, 4.0, 1.0, 2.0 })
end

function TestValues.test_summary_agrees_with_the_functions()
  local x = { 9, 2, 4, 4, 4, 5, 5, 7 }
  local s = stats.summary(x)
  luaunit.assertEquals(s.count, 8)
  luaunit.assertEquals(math.type(s.count), "integer")
  for _, name in ipairs { "mean", "median", "mad", "cv_percent", "min", "max" } do
    luaunit.assertEquals(s[name], stats[name](x))
  end
  luaunit.assertEquals(s.stdev, stats.stdev(x, "population"))
  for name, q in pairs { p05 = 0.05, p25 = 0.25, p75 = 0.75, p95 = 0.95, p99 = 0.99 } do
    luaunit.assertEquals(s[name], stats.percentile(x, q, "nearest_rank"))
  end
end

--- The figures are fixed: another machine or version must give the same bits.
function TestValues.test_bootstrap_is_the_same_everywhere()
  local x = {}
  for i = 1, 100 do x[i] = i * i % 101 end
  local low, high = stats.bootstrap_median(x)
  luaunit.assertEquals({ low, high }, { 37.0, 64.5 })
  low, high = stats.bootstrap_median(x, { seed = 2, resamples = 50, confidence = 0.5 })
  luaunit.assertEquals({ low, high }, { 48.0, 54.0 })
end

function TestValues.test_mann_whitney()
  local apart = stats.mann_whitney({ 1, 2, 3 }, { 4, 5, 6 })
  luaunit.assertEquals({ apart.u, apart.exact }, { 0.0, true })
  luaunit.assertAlmostEquals(apart.p, 0.1, 1e-15)
  luaunit.assertEquals(stats.vector(1, 2):mann_whitney(stats.vector(1, 2)).p, 1.0)
end

function TestValues.test_wrong_arguments_are_named()
  local cases = {
    { "median\'.-element 2: expected a number, got string", stats.median, { 1, "2" } },
    { "median\'.-expected, got nil", stats.median, nil },
    { "median\'.-expected, got FILE", stats.median, io.stdout },
    { "percentile\'.-expected 0 to 1", stats.percentile, { 1 }, 1.01, "linear" },
    { "percentile\'.-expected 0 to 1", stats.percentile, { 1 }, NAN, "linear" },
    { "did you mean 'linear'", stats.percentile, { 1 }, 0.5, "liner" },
    { "stdev\'.-string expected", stats.stdev, { 1 } },
    { "did you mean 'seed'", stats.bootstrap_median, { 1 }, { sed = 1 } },
    { "'confidence'", stats.bootstrap_median, { 1 }, { confidence = 1.5 } },
    { "confidence", stats.bootstrap_median, { 1 }, { confidence = 1 } },
    { "'resamples'", stats.bootstrap_median, { 1 }, { resamples = 0 } },
    { "#2.-mann_whitney", stats.mann_whitney, { 1 } },
  }
  for _, case in ipairs(cases) do
    local ok, message = pcall(table.unpack(case, 2, 5))
    luaunit.assertFalse(ok)
    luaunit.assertStrMatches(message, ".*" .. case[1] .. ".*")
  end
end

TestVector = {}

function TestVector.test_is_a_list()
  local x = stats.vector(1, 2)
  luaunit.assertIs(x:push(3, 4), x)
  luaunit.assertIs(x:append { 5 }:append(x), x)
  luaunit.assertEquals(#x, 10)
  luaunit.assertEquals(x:to_table(), { 1.0, 2.0, 3.0, 4.0, 5.0, 1.0, 2.0, 3.0, 4.0, 5.0 })
  x[2] = 9
  luaunit.assertEquals({ x[2], x[0], x[11], x[1.5] }, { 9.0 })
  luaunit.assertErrorMsgContains("expected 1 to 10", function() x[11] = 1 end)
  luaunit.assertErrorMsgContains("number expected", function() x[1] = "a" end)
  luaunit.assertEquals(tostring(x), "stats.vector (10 numbers)")
end

function TestVector.test_a_failed_push_adds_nothing()
  local x = stats.vector(1)
  luaunit.assertError(x.push, x, 2, "three")
  luaunit.assertError(x.append, x, { 2, "three" })
  luaunit.assertEquals(#x, 1)
end

function TestVector.test_raw_strings()
  local bytes = string.pack("<ddd", 1.5, -0.0, math.huge)
  local x = stats.from_string(bytes)
  luaunit.assertEquals(x:to_table(), { 1.5, -0.0, math.huge })
  luaunit.assertEquals(x:to_string(), bytes)
  luaunit.assertErrorMsgContains("multiple of 8", stats.from_string, "1234567")
end

local function write_file(text)
  local path = os.tmpname()
  local file <close> = assert(io.open(path, "wb"))
  assert(file:write(text))
  return path
end

function TestVector.test_files()
  local path = write_file("# microseconds\n1.5\n\n -2e3 \r\n0x10\n7")
  luaunit.assertEquals(stats.from_file(path):to_table(), { 1.5, -2000.0, 16.0, 7.0 })
  os.remove(path)
  local cases = {
    { "1\n2 3\n", "line 2: not a number: '2 3'" },
    { "a\n", "line 1: not a number: 'a'" },
    { ("1"):rep(300), "line 1: not a number" },
    { "1\0002\n", "line 1: not a number" },
  }
  for _, case in ipairs(cases) do
    path = write_file(case[1])
    local x, message, code = stats.from_file(path)
    os.remove(path)
    luaunit.assertNil(x)
    luaunit.assertStrContains(message, case[2])
    luaunit.assertEquals(code, "EINVAL")
  end
end

function TestVector.test_files_that_cannot_be_read()
  luaunit.assertEquals(select(3, stats.from_file("/nowhere/at all")), "ENOENT")
  luaunit.assertEquals(select(3, stats.from_file("/")), "EISDIR")
end

function TestVector.test_use_after_close()
  local x = stats.vector(1, 2)
  x:close()
  x:close()
  luaunit.assertEquals(tostring(x), "stats.vector (closed)")
  for _, name in ipairs { "median", "push", "append", "to_table", "to_string" } do
    luaunit.assertErrorMsgContains("closed vector", x[name], x, 1)
  end
  luaunit.assertErrorMsgContains("closed vector", function() return #x end)
  luaunit.assertErrorMsgContains("closed vector", function() return x[1] end)
  luaunit.assertErrorMsgContains("closed vector", stats.median, x)
end

function TestVector.test_wrong_self()
  local x = stats.vector(1)
  for _, name in ipairs { "push", "to_table", "to_string", "close" } do
    luaunit.assertErrorMsgContains("stats.vector expected", x[name], { 1 })
  end
  luaunit.assertEquals(getmetatable(x), "protected")
end

--- A finalizer that grows or closes the vector at work, at any allocation.
function TestVector.test_changed_while_in_use()
  for _ = 1, 300 do
    local x = stats.vector()
    for i = 1, 50 do x:push(i) end
    local function grow() x:push(table.unpack(x, 1, 50)) end
    for _ = 1, 3 do setmetatable({}, { __gc = grow }) end
    luaunit.assertEquals(x:median(), stats.median(x:to_table()))
    setmetatable({}, { __gc = function() x:close() end })
    pcall(x.append, x, x)
    pcall(x.summary, x)
  end
end

function TestVector.test_any_value_anywhere()
  local report = fuzz.module(stats, {
    n = 30000,
    values = {
      "linear", "nearest_rank", "population", "sample", "confidence", "resamples", "seed",
    },
    make = { function() return stats.vector(3, 1, 2, 5, 8, 9) end, stats.vector },
  })
  luaunit.assertEquals(report.unreached, {})
end
