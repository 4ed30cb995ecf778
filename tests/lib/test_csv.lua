local csv = require("nclua.csv")
local files = require("nclua.files")
local luaunit = require("luaunit")
local scratch = require("scratch")

TestCsv = {}

function TestCsv.test_numbers_survive()
  local cases = { { 1, "1" }, { 1.0, "1" }, { 0.1, "0.1" },
    { 1 / 3, "0.33333333333333331" },
    { 0.1 + 0.2, "0.30000000000000004" }, { 1e300, "1e+300" }, { math.huge, "inf" },
    { -math.huge, "-inf" }, { 0 / 0, "nan" }, { math.maxinteger, "9223372036854775807" } }
  for _, case in ipairs(cases) do
    luaunit.assertEquals(csv.number(case[1]), case[2])
    local back = csv.value(case[2])
    luaunit.assertTrue(back == case[1] or (back ~= back and case[1] ~= case[1]), case[2])
  end
end

function TestCsv.test_values_are_read_as_written()
  for _, value in ipairs({ true, false, 7, -1.5, "true story", "0x10", "a,b", "" }) do
    local text = csv.encode({ "a", "b" }, { { a = value, b = 1 } })
    local rows = assert(csv.decode(text))
    local wanted = value
    if value == "" then wanted = nil end
    luaunit.assertEquals(csv.value(rows[1].a), wanted)
  end
end

function TestCsv.test_quoting_there_and_back()
  local texts = { "plain", "a,b", 'say "hi"', '"', '""',
    "two\nlines", "cr\rlf\r\n", ",", " x " }
  local rows = {}
  for i, text in ipairs(texts) do rows[i] = { text = text, other = i } end
  local back, columns = csv.decode(csv.encode({ "text", "other" }, rows))
  luaunit.assertEquals(columns, { "text", "other" })
  for i, text in ipairs(texts) do luaunit.assertEquals(back[i].text, text) end
end

function TestCsv.test_reads_what_others_write()
  local cases = {
    { "a,b\r\n1,2\r\n", { { a = "1", b = "2" } } },
    { "a,b\n1,2", { { a = "1", b = "2" } } },
    { "a\n\n", { { a = "" } } },
    { 'a,b\n"x""y",\n', { { a = 'x"y', b = "" } } },
    { "a,b\n", {} },
    { "", {} },
  }
  for _, case in ipairs(cases) do
    luaunit.assertEquals(assert(csv.decode(case[1])), case[2], case[1])
  end
end

function TestCsv.test_says_what_is_wrong()
  local cases = {
    { "a,b\n1\n", "record 2: 1 fields, expected 2" },
    { 'a\n"open\n', "record 2: a quoted field never ends" },
    { 'a\n"x"y\n', 'record 2: "y" after a field' },
    { "a\n1\r2\n", "record 2: .* after a field" },
  }
  for _, case in ipairs(cases) do
    local rows, message, code = csv.decode(case[1])
    luaunit.assertNil(rows)
    luaunit.assertStrMatches(message, case[2])
    luaunit.assertEquals(code, "EINVAL")
  end
end

function TestCsv.test_file()
  local folder <close> = scratch.folder()
  local path = folder.path .. "/t.csv"
  local rows = { { n = 2.5, ok = true }, { n = 3, ok = false } }
  assert(csv.write(path, { "n", "ok", "none" }, rows))
  luaunit.assertEquals(files.read(path), "n,ok,none\n2.5,true,\n3,false,\n")
  luaunit.assertEquals(csv.read(path), { { n = 2.5, ok = true }, { n = 3, ok = false } })
  luaunit.assertEquals(files.list(folder.path), { "t.csv" })
end

function TestCsv.test_empty_is_refused()
  local folder <close> = scratch.folder()
  local ok, message, code = csv.write(folder.path .. "/t.csv", { "n" }, {})
  luaunit.assertNil(ok)
  luaunit.assertStrContains(message, "refusing to write empty CSV")
  luaunit.assertEquals(code, "EMPTY")
  luaunit.assertEquals(files.list(folder.path), {})
end
