--- nclua.cuda, on the backend that NCLUA_BACKEND names: the module, buffers and slices.
--- Two devices are needed.
local cuda = require("nclua.cuda")
local luaunit = require("luaunit")

local DTYPES = {
  "i8", "u8", "i32", "u32", "i64", "u64", "f16", "bf16", "f32", "f64", "f8e4m3", "f8e5m2",
}
local SIZE = {
  i8 = 1, u8 = 1, i32 = 4, u32 = 4, i64 = 8, u64 = 8, f16 = 2, bf16 = 2, f32 = 4, f64 = 8,
  f8e4m3 = 1, f8e5m2 = 1,
}

local function raises(text, f, ...)
  luaunit.assertErrorMsgContains(text, f, ...)
end

local function is_nan(x)
  return x ~= x
end

local function buffer(dtype, values)
  return assert(cuda.buffer(dtype, #values)):copy_from(values)
end

TestModule = {}

function TestModule.test_devices()
  local devices = assert(cuda.devices())
  luaunit.assertEquals(#devices, cuda.device_count())
  local uuids = {}
  for i, device in ipairs(devices) do
    luaunit.assertEquals(device.index, i - 1)
    luaunit.assertStrMatches(device.uuid, "%x+%-%x%x%x%x%-%x%x%x%x%-%x%x%x%x%-%x+")
    luaunit.assertNil(uuids[device.uuid])
    uuids[device.uuid] = true
    luaunit.assertEquals(math.type(device.memory_bytes), "integer")
    luaunit.assertTrue(device.memory_bytes > 0 and device.multiprocessors > 0)
    luaunit.assertStrMatches(device.compute_capability, "%d+%.%d+")
    luaunit.assertTrue(#device.name > 0 and #device.pci_bus_id > 0)
  end
end

function TestModule.test_backend_and_version()
  luaunit.assertEquals(cuda.backend(), os.getenv("NCLUA_BACKEND"))
  luaunit.assertStrMatches(cuda.driver_version(), "%d+%.%d+")
end

function TestModule.test_a_backend_in_use_stays()
  luaunit.assertErrorMsgContains("did you mean 'cpu'?", cuda.backend, "tpu")
  assert(cuda.devices())
  luaunit.assertErrorMsgContains("backend: " .. cuda.backend() .. " is in use",
    cuda.backend, "cpu")
end

function TestModule.test_set_device()
  raises("expected 0 to", cuda.set_device, -1)
  raises("expected 0 to", cuda.set_device, cuda.device_count())
  raises("integer", cuda.set_device, 0.5)
  luaunit.assertEquals(cuda.device(), 0)
  cuda.set_device(1)
  luaunit.assertEquals(cuda.device(), 1)
  local x <close> = cuda.buffer("i32", 3):fill(7)
  local stream <close> = cuda.stream()
  cuda.set_device(0)
  luaunit.assertEquals(x.device, 1)
  luaunit.assertEquals(stream.device, 1)
  luaunit.assertEquals(x:fill(8, stream):to_table(), { 8, 8, 8 }) -- device 0 is current
end

function TestModule.test_clock()
  local before = cuda.now_ns()
  luaunit.assertEquals(math.type(before), "integer")
  luaunit.assertTrue(cuda.now_ns() >= before)
end

function TestModule.test_ranges()
  luaunit.assertEquals({ cuda.range("a", function() return 1, nil, 3 end) }, { 1, nil, 3 })
  raises("oops", cuda.range, "b", function()
    cuda.range_push("left behind")
    error("oops")
  end)
  raises("no range was pushed", cuda.range_pop)
  cuda.range_push("c")
  cuda.range_pop()
  raises("function expected", cuda.range, "d")
end

function TestModule.test_device_mismatch()
  local x <close> = cuda.buffer("f32", 4):fill(1)
  cuda.set_device(1)
  local stream <close> = cuda.stream()
  local y <close> = cuda.buffer("f32", 4):fill(2)
  local event <close> = cuda.event()
  cuda.set_device(0)
  raises("the stream is on device 1, expected device 0", x.fill, x, 1, stream)
  raises("on another device", x.compare, x, y)
  local here <close> = cuda.stream()
  raises("the stream is on device 0, expected device 1", event.record, event, here)
  luaunit.assertEquals(x:copy_from(y):to_table(), { 2, 2, 2, 2 }) -- by way of the host
end

TestBuffer = {}

function TestBuffer.test_fields()
  for _, dtype in ipairs(DTYPES) do
    local x <close> = assert(cuda.buffer(dtype, 5))
    luaunit.assertEquals(x.dtype, dtype)
    luaunit.assertEquals(x.count, 5)
    luaunit.assertEquals(#x, 5)
    luaunit.assertEquals(x.bytes, 5 * SIZE[dtype])
    luaunit.assertEquals(x.device, 0)
    luaunit.assertStrContains(tostring(x), dtype)
  end
  local x <close> = cuda.buffer("f32", 1)
  raises("cuda.buffer has no field 'size'", function() return x.size end)
  raises("cuda.buffer has no field '1'", function() return x[1] end)
  luaunit.assertError(function() x.bytes = 3 end)
end

function TestBuffer.test_wrong_arguments()
  raises("did you mean 'f32'", cuda.buffer, "f3", 1)
  raises("expected 0 to", cuda.buffer, "f32", -1)
  raises("expected 0 to", cuda.buffer, "f64", math.maxinteger)
  raises("integer", cuda.buffer, "f32", 1.5)
  raises("unknown option 'knd': expected 'kind'", cuda.buffer, "f32", 1, { knd = "nccl" })
  raises("'device' or 'nccl'", cuda.buffer, "f32", 1, { kind = "host" })
end

function TestBuffer.test_too_large()
  local x, message, code = cuda.buffer("i8", 1 << 60)
  luaunit.assertNil(x)
  luaunit.assertEquals(code, "CUDA_ERROR_OUT_OF_MEMORY")
  luaunit.assertStrContains(message, "buffer: CUDA_ERROR_OUT_OF_MEMORY: ")
end

function TestBuffer.test_empty()
  for _, dtype in ipairs({ "i8", "f64" }) do
    local x <close> = assert(cuda.buffer(dtype, 0))
    x:fill(1):pattern():copy_from({}):copy_from(""):copy_from(x)
    luaunit.assertEquals(x:to_table(), {})
    luaunit.assertEquals(x:to_string(), "")
    luaunit.assertEquals({ x:compare(3) }, { 0 })
    luaunit.assertEquals(x:slice(1, 0).count, 0)
    raises("expected 1 to 0", x.get, x, 1)
  end
end

--- Values that a round trip must not change.
local EXACT = {
  i8 = { -128, -1, 0, 1, 127 },
  u8 = { 0, 1, 128, 255 },
  i32 = { -(1 << 31), -1, 0, (1 << 31) - 1 },
  u32 = { 0, 1 << 31, (1 << 32) - 1 },
  i64 = { math.mininteger, -1, (1 << 53) + 1, math.maxinteger },
  u64 = { 0, (1 << 53) + 1, math.maxinteger, math.mininteger, -1 },
  f16 = { -65504.0, -0.5, 0.0, 2.0 ^ -24, 1.0, 2048.0, math.huge, -math.huge },
  bf16 = { -2.0 ^ 127, -1.5, 0.0, 256.0, 2.0 ^ -133, math.huge, -math.huge },
  f32 = { -1.5, 2.0 ^ -149, 16777216.0, 3.4028234663852886e38, math.huge },
  f64 = { -1.5, 5e-324, 0.1, 9007199254740993.0, 1.7976931348623157e308, -math.huge },
  f8e4m3 = { -448.0, 2.0 ^ -9, 1.125, 448.0 },
  f8e5m2 = { -57344.0, 2.0 ^ -16, 1.25, math.huge, -math.huge },
}

function TestBuffer.test_round_trip()
  for _, dtype in ipairs(DTYPES) do
    local values = EXACT[dtype]
    local x <close> = buffer(dtype, values)
    luaunit.assertEquals(x:to_table(), values, dtype)
    for i, value in ipairs(values) do
      luaunit.assertEquals(x:copy_from(values):get(i), value, dtype)
      luaunit.assertEquals(math.type(x:get(i)), math.type(value), dtype)
      luaunit.assertEquals(x:fill(value):get(#values), value, dtype)
      luaunit.assertEquals(x:set(1, value):get(1), value, dtype)
    end
    x:copy_from(values)
    local y <close> = cuda.buffer(dtype, #values):copy_from(x:to_string())
    luaunit.assertEquals(y:to_table(), values, dtype)
    luaunit.assertEquals(y:compare(x), 0)
    luaunit.assertEquals(y:fill(0):copy_from(x):to_string(), x:to_string())
  end
end

function TestBuffer.test_nan()
  for _, dtype in ipairs({ "f16", "bf16", "f32", "f64", "f8e4m3", "f8e5m2" }) do
    local x <close> = buffer(dtype, { 0 / 0, 1, 0 / 0 })
    luaunit.assertTrue(is_nan(x:get(1)) and is_nan(x:get(3)), dtype)
    local y <close> = buffer(dtype, { 0 / 0, 1, 1 })
    luaunit.assertEquals({ x:compare(y) }, { 1, 3 }, dtype)
    luaunit.assertEquals({ x:compare(0 / 0) }, { 1, 2 }, dtype)
  end
end

--- Rounding is to nearest, ties to even.
function TestBuffer.test_rounding()
  local CASES = {
    { "f16", 2049, 2048 }, { "f16", 2051, 2052 }, { "f16", 65520, math.huge },
    { "bf16", 257, 256 }, { "bf16", 259, 260 }, { "f8e4m3", 17, 16 }, { "f8e5m2", 9, 8 },
    { "f32", 16777217, 16777216 }, { "f16", 1 / 3, 0.333251953125 },
    { "f8e5m2", 1e9, math.huge },
  }
  for _, case in ipairs(CASES) do
    local dtype, value, want = table.unpack(case)
    local x <close> = cuda.buffer(dtype, 1):fill(value)
    luaunit.assertEquals(x:get(1), want, dtype .. " " .. value)
    luaunit.assertEquals(x:copy_from({ value + 0.0 }):get(1), want, dtype .. " " .. value)
  end
  local x <close> = cuda.buffer("f8e4m3", 1):fill(1e9) -- it has no infinity
  luaunit.assertTrue(is_nan(x:get(1)))
end

local NO_FIT = {
  { "i8", 128 }, { "i8", -129 }, { "u8", 256 }, { "u8", -1 }, { "i32", 1 << 31 },
  { "u32", 1 << 32 }, { "u32", -1 }, { "i64", 2.0 ^ 63 }, { "u64", 2.0 ^ 64 },
  { "u64", -1.0 }, { "i32", 0.5 }, { "i32", 0 / 0 }, { "i64", math.huge },
}

function TestBuffer.test_ranges()
  for _, case in ipairs(NO_FIT) do
    local dtype, value = table.unpack(case)
    local x <close> = cuda.buffer(dtype, 3):fill(7)
    local text = ("%s does not fit in %s"):format(value, dtype)
    raises(text, x.fill, x, value)
    raises(text, x.set, x, 2, value)
    raises(text, x.compare, x, value)
    raises("copy_from: element 3: " .. text, x.copy_from, x, { 1, 2, value })
    luaunit.assertEquals(x:to_table(), { 7, 7, 7 }) -- all or nothing
  end
  local x <close> = cuda.buffer("f32", 1)
  raises("element 1: expected a number, got string", x.copy_from, x, { "1" })
end

function TestBuffer.test_large_integers_are_exact()
  local values = {}
  for i = 1, 1000 do values[i] = (1 << 62) + i * 7919 end
  for _, dtype in ipairs({ "i64", "u64" }) do
    local x <close> = buffer(dtype, values)
    luaunit.assertEquals(x:to_table(), values)
  end
end

function TestBuffer.test_copy_lengths()
  local x <close> = cuda.buffer("i32", 3)
  raises("copy_from: the table has 2 elements, the buffer 3", x.copy_from, x, { 1, 2 })
  raises("copy_from: the string has 11 bytes, the buffer 12", x.copy_from, x, ("a"):rep(11))
  local y <close> = cuda.buffer("i32", 4)
  raises("copy_from: expected 3 elements of i32, got 4 of i32", x.copy_from, x, y)
  local z <close> = cuda.buffer("u32", 3)
  raises("copy_from: expected 3 elements of i32, got 3 of u32", x.copy_from, x, z)
  raises("table, string or cuda.buffer expected", x.copy_from, x, 1)
  raises("table, string or cuda.buffer expected", x.copy_from, x)
  raises("cuda.buffer expected", x.copy_from, x, io.stdout)
end

function TestBuffer.test_to_table_parts()
  local x <close> = cuda.buffer("u8", 5):pattern()
  luaunit.assertEquals(x:to_table(2), { 1, 2, 3, 4 })
  luaunit.assertEquals(x:to_table(2, 2), { 1, 2 })
  luaunit.assertEquals(x:to_table(6), {})
  luaunit.assertEquals(x:to_table(nil, 1), { 0 })
  raises("expected 1 to 6, got 7", x.to_table, x, 7)
  raises("expected 0 to 2, got 3", x.to_table, x, 4, 3)
  for _, index in ipairs({ 0, -1, 6, math.maxinteger, math.mininteger }) do
    raises("expected 1 to 5", x.get, x, index)
    raises("expected 1 to 5", x.set, x, index, 1)
  end
end

function TestBuffer.test_pattern()
  local x <close> = cuda.buffer("i32", 6)
  luaunit.assertEquals(x:pattern():to_table(), { 0, 1, 2, 3, 4, 5 })
  x:pattern({ start = 3, step = 2, modulus = 7 })
  luaunit.assertEquals(x:to_table(), { 3, 5, 0, 2, 4, 6 })
  x:pattern({ start = math.maxinteger, step = math.maxinteger, modulus = 1000003 })
  local big = math.maxinteger % 1000003
  for i = 1, 6 do luaunit.assertEquals(x:get(i), big * i % 1000003) end
  raises("option 'modulus': expected 1 to", x.pattern, x, { modulus = 0 })
  raises("option 'step'", x.pattern, x, { step = -1 })
  raises("unknown option 'steps'", x.pattern, x, { steps = 1 })
end

--- The default modulus keeps every element exact, whatever the dtype.
function TestBuffer.test_default_pattern_is_exact()
  local LIMIT = {
    i8 = 128, u8 = 256, f16 = 2048, bf16 = 256, f8e4m3 = 16, f8e5m2 = 8, f32 = 1 << 24,
  }
  for _, dtype in ipairs(DTYPES) do
    local x <close> = cuda.buffer(dtype, 3000):pattern()
    for i, value in ipairs(x:to_table()) do
      local want = (i - 1) % (LIMIT[dtype] or 1 << 31)
      if value ~= want then luaunit.fail(("%s[%d] is %s"):format(dtype, i, value)) end
    end
  end
end

function TestBuffer.test_compare()
  local x <close> = buffer("f32", { 1, 2, 3, 4 })
  local y <close> = buffer("f32", { 1, 2.0002, 3, 5 })
  luaunit.assertEquals({ x:compare(x) }, { 0 })
  luaunit.assertEquals({ x:compare(y) }, { 2, 2 })
  luaunit.assertEquals({ x:compare(y, { tolerance = 1e-3 }) }, { 1, 4 })
  luaunit.assertEquals({ x:compare(y, { tolerance = 0.2 }) }, { 0 })
  luaunit.assertEquals({ x:compare(3) }, { 3, 1 })
  luaunit.assertEquals({ x:slice(2, 3):compare(3) }, { 2, 1 })
  raises("option 'tolerance'", x.compare, x, y, { tolerance = -1 })
  raises("option 'tolerance'", x.compare, x, y, { tolerance = 0 / 0 })
  raises("cuda.stream expected", x.compare, x, y, { stream = 1 })
  local half <close> = cuda.buffer("f16", 4)
  raises("compare: expected 4 elements of f32, got 4 of f16", x.compare, x, half)
  local stream <close> = cuda.stream()
  x:fill(9, stream)
  luaunit.assertEquals({ x:compare(9, { stream = stream }) }, { 0 })
end

function TestBuffer.test_compare_64_bits()
  local x <close> = buffer("i64", { (1 << 53) + 1, (1 << 53) })
  luaunit.assertEquals({ x:compare(1 << 53) }, { 1, 1 })
end

TestSlice = {}

function TestSlice.test_views()
  local x <close> = cuda.buffer("i32", 10):pattern()
  local s = x:slice(3, 4)
  luaunit.assertEquals(s:to_table(), { 2, 3, 4, 5 })
  luaunit.assertEquals(s.bytes, 16)
  luaunit.assertEquals(s:slice(2, 2):fill(-1):to_table(), { -1, -1 })
  luaunit.assertEquals(x:to_table(3, 4), { 2, -1, -1, 5 })
  luaunit.assertEquals(x:slice(1, 5):copy_from(x:slice(6, 5)):to_table(), { 5, 6, 7, 8, 9 })
  luaunit.assertEquals(x:slice(11, 0):to_table(), {})
  raises("the two slices overlap", s.copy_from, s, x:slice(4, 4))
  s:copy_from(s)
end

function TestSlice.test_bounds()
  local x <close> = cuda.buffer("i32", 10)
  raises("expected 1 to 11, got 0", x.slice, x, 0, 1)
  raises("expected 1 to 11, got 12", x.slice, x, 12, 0)
  raises("expected 0 to 8, got 9", x.slice, x, 3, 9)
  raises("expected 0 to 10, got -1", x.slice, x, 1, -1)
  raises("expected 0 to 10", x.slice, x, 1, math.maxinteger)
  raises("number expected, got no value", x.slice, x, 1)
end

function TestSlice.test_child_after_parent()
  local x = cuda.buffer("i32", 4):fill(5)
  local s, t = x:slice(2, 2), x:slice(1, 1)
  t:close()
  raises("closed buffer", t.get, t, 1)
  luaunit.assertEquals(x:get(1), 5) -- a slice owns nothing
  local u = s:slice(1, 1)
  s:close()
  luaunit.assertEquals(u:get(1), 5) -- depends on the buffer, not on the slice
  x:close()
  raises("closed buffer", u.get, u, 1)
  luaunit.assertStrContains(tostring(u), "closed")
  u:close()
end

function TestSlice.test_keeps_its_buffer()
  local s = cuda.buffer("i32", 4):fill(5):slice(2, 2):slice(1, 2)
  for _ = 1, 3 do collectgarbage() end
  luaunit.assertEquals(s:to_table(), { 5, 5 })
end
