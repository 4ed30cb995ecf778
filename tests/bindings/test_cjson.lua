local cjson = require("cjson")
local fuzz = require("fuzz")
local luaunit = require("luaunit")

local function nested(depth)
  return ("["):rep(depth) .. ("]"):rep(depth)
end

TestCjson = {}

function TestCjson.test_is_the_package()
  local text = '{"a":[1,2.5,"x",true,null]}'
  luaunit.assertEquals(cjson.encode(cjson.decode(text)), text)
  luaunit.assertEquals(cjson._NAME, "cjson")
  luaunit.assertEquals(cjson.encode_max_depth(), 1000)
  luaunit.assertErrorMsgContains("expected 1 argument", cjson.encode)
  luaunit.assertErrorMsgContains("expected 1 argument", cjson.encode, 1, 2)
end

function TestCjson.test_encode_refuses()
  local loop = {}
  loop.loop = loop
  local bush = {} -- a tree of 2^2000 leaves by two tables a level
  for _ = 1, 2000 do bush = { bush, bush } end
  local cases = {
    { "NaN or Inf", 0 / 0 },
    { "NaN or Inf", { { 1 / 0 } } },
    { "excessive nesting", loop },
    { "excessive nesting", bush },
    { "excessively sparse array", { [1000] = 1 } },
    { "excessively sparse array", { [1 << 40] = 1 } },
    { "type not supported", print },
    { "type not supported", { io.stdout } },
    { "table key must be", { [true] = 1 } },
  }
  for _, case in ipairs(cases) do
    luaunit.assertErrorMsgContains(case[1], cjson.encode, case[2])
  end
end

--- One text of 64 MiB many times over: 2^31 bytes and more, without the memory for them.
function TestCjson.test_encode_measures_first()
  local big = ("x"):rep(64 << 20)
  local many = { big, big, big, big, big }
  luaunit.assertErrorMsgContains("more than", cjson.encode, { many, big })
  luaunit.assertErrorMsgContains("more than", cjson.encode, { [big] = many })
  local dense = cjson.new()
  dense.encode_sparse_array(false, 0)
  luaunit.assertErrorMsgContains("more than", dense.encode, { [1 << 30] = 1 })
  luaunit.assertErrorMsgContains("sparse", dense.encode, { [1 << 40] = 1 })
  luaunit.assertEquals(dense.encode { [3] = 1 }, "[null,null,1]")
  dense.encode_sparse_array(true, 2, 2)
  luaunit.assertEquals(dense.encode { [1 << 30] = 1 }, '{"1073741824":1}')
end

function TestCjson.test_depth_has_a_ceiling()
  local deep = cjson.new()
  for _, name in ipairs { "encode_max_depth", "decode_max_depth" } do
    luaunit.assertErrorMsgContains("at most 10000", deep[name], 10001)
    luaunit.assertErrorMsgContains("at most 10000", deep[name], "1e9")
    luaunit.assertEquals(deep[name](10000), 10000)
  end
  local text = nested(10000)
  local value = coroutine.wrap(deep.decode)(text)
  value[1][1][1][1] = deep.decode(nested(9996))
  luaunit.assertErrorMsgContains("nested", deep.decode, nested(10001))
  local encoded = coroutine.wrap(deep.encode)(value)
  luaunit.assertEquals(#encoded, #text)
  luaunit.assertEquals(cjson.decode_max_depth(), 1000) -- another instance's setting
end

function TestCjson.test_decode_refuses()
  local strict = cjson.new()
  strict.decode_invalid_numbers(false)
  for _, text in ipairs {
    "", "[", "[1,", '{"a"', '{"a":}', '"\\u12', '"\\ud800\\u0000"', '"\\', "nul", "[1]]",
    "-", "0x1", "NaN", "\0\0", "[\0]", "\xff", '"a\0b"', nested(1001), "{1:2}", "[,]",
    "1e]",
  } do
    local ok, value = pcall(strict.decode, text)
    luaunit.assertFalse(ok, text .. " gave " .. tostring(value))
  end
end

function TestCjson.test_safe_returns_what_the_other_raises()
  local safe = require("cjson.safe")
  luaunit.assertEquals({ safe.encode { 1 } }, { "[1]" })
  local value, message = safe.encode(0 / 0)
  luaunit.assertNil(value)
  luaunit.assertStrContains(message, "NaN")
  value, message = safe.new().decode("[")
  luaunit.assertNil(value)
  luaunit.assertStrContains(message, "Expected value")
  luaunit.assertErrorMsgContains("expected 1 argument", safe.encode)
  luaunit.assertErrorMsgContains("at most 10000", safe.new().decode_max_depth, 10001)
end

--- Texts near to valid ones: pieces joined at random, bytes changed.
function TestCjson.test_decode_of_damaged_text()
  local pieces = {
    "[", "]", "{", "}", ",", ":", '"', "\\", "\\u", "d83d", "\\ude00", "1", "-", "e", ".",
    "null", "true", "0x", "inf", "nan", " ", "\0", '"a":', '"b"', "\xf0\x9f", "9999999999",
  }
  math.randomseed(1)
  local lenient = cjson.new()
  lenient.decode_invalid_numbers(true)
  local decoded = 0
  for _ = 1, 40000 do
    local text = {}
    for i = 1, math.random(12) do text[i] = pieces[math.random(#pieces)] end
    local ok, value = pcall(lenient.decode, table.concat(text))
    if ok then
      decoded = decoded + 1
      pcall(cjson.encode, value)
    end
  end
  luaunit.assertTrue(decoded > 100)
end

function TestCjson.test_any_value_anywhere()
  local values = { '{"a":[1,2]}', "[]", cjson.null, "off", "on", "null", 1000, 100000 }
  for _, name in ipairs { "cjson", "cjson.safe" } do
    local report = fuzz.module(require(name).new(), { n = 20000, values = values })
    luaunit.assertEquals(report.unreached, {})
  end
end
