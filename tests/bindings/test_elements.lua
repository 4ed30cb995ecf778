--- nclua.elements: arithmetic rounded as NCCL's kernels round, checked against known bits.
local elements = require("nclua.elements")
local luaunit = require("luaunit")

local eq = luaunit.assertEquals

local function half(...)
  return string.pack("<" .. ("I2"):rep(select("#", ...)), ...)
end

local function float(...)
  return string.pack("<" .. ("f"):rep(select("#", ...)), ...)
end

TestElements = {}

function TestElements.test_f16()
  -- 2048 + 1 ties to even 2048; 2048 + 3 is 2051, a tie to 2052; 65504 + 16 overflows
  eq(elements.reduce("f16", "sum", half(0x6800, 0x6800, 0x7bff),
    half(0x3c00, 0x4200, 0x4c00)), half(0x6800, 0x6802, 0x7c00))
  eq(elements.reduce("f16", "prod", half(0x3e00), half(0x3e00)), half(0x4080)) -- 1.5 * 1.5
end

function TestElements.test_bf16()
  eq(elements.reduce("bf16", "sum", half(0x4380, 0x4380), half(0x3f80, 0x4040)),
    half(0x4380, 0x4382)) -- 256 + 1 stays 256, 256 + 3 is 259, rounded to 260
end

function TestElements.test_f32_and_f64()
  eq(elements.reduce("f32", "sum", float(2 ^ 24, 0.1), float(1, 0.2)),
    float(2 ^ 24, string.unpack("<f", float(0.1)) + string.unpack("<f", float(0.2))))
  eq(elements.reduce("f64", "sum", string.pack("<d", 2 ^ 53), string.pack("<d", 1)),
    string.pack("<d", 2 ^ 53))
end

function TestElements.test_nan_and_zero()
  local nan = 0 / 0
  local a, b = float(nan, 1, -0.0), float(2, nan, 0.0)
  eq(elements.reduce("f32", "max", a, b), float(2, 1, 0.0))
  eq(elements.reduce("f32", "min", a, b), float(2, 1, -0.0))
  eq(elements.reduce("f32", "sum", float(nan, math.huge), float(1, -math.huge)),
    string.pack("<I4I4", 0x7fffffff, 0x7fffffff))
  eq(elements.reduce("f16", "max", half(0xfe00), half(0x7e01)), half(0x7fff))
end

function TestElements.test_scale()
  eq(elements.scale("f16", half(0x3c00, 0x4200), 1 / 3), half(0x3555, 0x3c00))
  eq(elements.scale("f32", "", 2), "")
end

function TestElements.test_arguments()
  local wrong = luaunit.assertErrorMsgContains
  wrong("i32", elements.reduce, "i32", "sum", "", "")
  wrong("avg", elements.reduce, "f32", "avg", "", "")
  wrong("whole number", elements.reduce, "f32", "sum", "abc", "abc")
  wrong("not as long", elements.reduce, "f16", "sum", "ab", "abcd")
  wrong("number expected", elements.scale, "f16", "ab")
end
