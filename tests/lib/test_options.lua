local luaunit = require("luaunit")
local options = require("nclua.options")

local ROWS = {
  { "cycles", 10, "measured cycles", min = 1 },
  { "ratio", 0.5, "a ratio" },
  { "run_id", "now", "name of the run" },
  { "largest", "64M", "largest message", kind = "size" },
  { "cpu_affinity", "0,2", "CPUs", kind = "integers" },
  { "most", "auto", "size or auto", kind = "size" },
  { "sections", "all", "sections", kind = "list", choices = { "async", "decode" } },
  { "mode", "fast", "how", choices = { "fast", "slow" } },
  { "note", "", "free text" },
  { "traceback", false, "show the stack" },
  { "min_bytes", "1K", "first size", kind = "size", alias = "-b --min_bytes" },
  { "root_rank", 0, "the root", alias = "-r" },
}

local function parse(...)
  return options.parse("demo", "What it does.", ROWS, { ... })
end

TestOptions = {}

function TestOptions.test_defaults_give_the_types()
  luaunit.assertEquals(assert(parse()).values, {
    cycles = 10, ratio = 0.5, run_id = "now", largest = 64 << 20, cpu_affinity = { 0, 2 },
    most = "auto", sections = { "all" }, mode = "fast", note = "", traceback = false,
    min_bytes = 1024, root_rank = 0,
  })
end

function TestOptions.test_values()
  local cases = {
    { { "--cycles", "3" }, "cycles", 3 },
    { { "--cycles=3" }, "cycles", 3 },
    { { "-b8" }, "min_bytes", 8 },
    { { "-b", "2k" }, "min_bytes", 2048 },
    { { "--min_bytes", "16" }, "min_bytes", 16 },
    { { "--min-bytes=16" }, "min_bytes", 16 },
    { { "-r", "-1" }, "root_rank", -1 },
    { { "--root-rank", "-1" }, "root_rank", -1 },
    { { "--ratio", "2" }, "ratio", 2 },
    { { "--run-id", "x y" }, "run_id", "x y" },
    { { "--largest", "2KiB" }, "largest", 2048 },
    { { "--most", "auto" }, "most", "auto" },
    { { "--most", "1k" }, "most", 1024 },
    { { "--cpu-affinity", "1, 3" }, "cpu_affinity", { 1, 3 } },
    { { "--sections", "decode,async" }, "sections", { "decode", "async" } },
    { { "--mode", "slow" }, "mode", "slow" },
    { { "--traceback" }, "traceback", true },
  }
  for _, case in ipairs(cases) do
    luaunit.assertEquals(assert(parse(table.unpack(case[1]))).values[case[2]], case[3])
  end
end

function TestOptions.test_wrong_usage_is_one_line()
  local cases = {
    { { "--cycle", "3" }, "unknown option '%-%-cycle'%. Did you mean '%-%-cycles'%?" },
    { { "--cycles", "many" }, "%-%-cycles: expected an integer, got 'many'" },
    { { "--cycles", "2.5" }, "%-%-cycles: expected an integer" },
    { { "--cycles", "0" }, "%-%-cycles: expected at least 1, got 0" },
    { { "--cycles" }, "option '%-%-cycles' requires an argument" },
    { { "--ratio", "x" }, "%-%-ratio: expected a number" },
    { { "--largest", "big" }, "%-%-largest: not a size: 'big'" },
    { { "--cpu-affinity", "0,x" }, "%-%-cpu%-affinity: expected an integer, got 'x'" },
    { { "--sections", "decod" }, "%-%-sections: unknown 'decod': expected async, decode" },
    { { "--mode", "quick" }, "%-%-mode: unknown 'quick': expected fast, slow" },
    { { "extra" }, "too many arguments" },
  }
  for _, case in ipairs(cases) do
    local result, message, code = parse(table.unpack(case[1]))
    luaunit.assertNil(result, table.concat(case[1], " "))
    luaunit.assertStrMatches(message, ".*" .. case[2] .. ".*")
    luaunit.assertNil(message:find("\n"))
    luaunit.assertEquals(code, "EUSAGE")
  end
end

function TestOptions.test_every_option_is_listed()
  local texts = assert(parse("--largest", "2k", "--traceback")).texts
  luaunit.assertEquals(#texts, #ROWS)
  luaunit.assertEquals(texts[1], { "cycles", "10" })
  luaunit.assertEquals(texts[4], { "largest", "2k" })
  luaunit.assertEquals(texts[10], { "traceback", "true" })
end

function TestOptions.test_help_shows_options_and_description()
  local help = assert(parse("--help")).help
  local parts = { "What it does.", "--run-id <run_id>", "(default: 64M)", "--traceback" }
  for _, part in ipairs(parts) do
    luaunit.assertStrContains(help, part)
  end
end

function TestOptions.test_positional_arguments()
  local function of(kind, ...)
    local rows = {
      { "files", "", "what to read", positional = kind }, { "all", false, "" },
    }
    return options.parse("demo", "", rows, { ... })
  end
  for _, case in ipairs({
    { "+", { "a", "--all", "b" }, { "a", "b" } }, { "*", {}, {} },
    { "?", { "a" }, { "a" } },
  }) do
    local values = assert(of(case[1], table.unpack(case[2]))).values
    luaunit.assertEquals(values.files, case[3])
  end
  luaunit.assertEquals(select(2, of("+")), "missing argument: files")
  luaunit.assertEquals(select(2, of("?", "a", "b")), "unexpected argument: b")
  luaunit.assertStrContains(assert(of("+", "--help")).help, "[<files>] ...")
end

function TestOptions.test_header_of_a_script()
  local source = "#!/usr/bin/env nclua\n--- One line.\n---\n--- More:\n---   indented\n"
    .. "local x\n--- no\n"
  luaunit.assertEquals(options.header(source), "One line.\n\nMore:\n  indented")
  luaunit.assertEquals(options.header("local x = 1\n"), "")
end
