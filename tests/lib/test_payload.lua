local luaunit = require("luaunit")
local payload = require("nclua.payload")

-- The exact sum over ranks of what each would send.
local function sum_of_sends(dtype, count, ranks)
  local sum = {}
  for index = 0, ranks - 1 do
    local data <close> = payload.all_reduce({ index = index, count = ranks }, dtype, count)
    for i, value in ipairs(data.send:to_table()) do sum[i] = (sum[i] or 0) + value end
  end
  return sum
end

TestPayload = {}

function TestPayload.test_what_is_expected_is_the_sum()
  for _, ranks in ipairs({ 1, 2, 3, 8, 64 }) do
    for _, dtype in ipairs({ "f16", "f32" }) do
      local data <close> = payload.all_reduce({ index = 0, count = ranks }, dtype, 23)
      local sum = sum_of_sends(dtype, 23, ranks)
      luaunit.assertEquals(data.expected:to_table(), sum, dtype .. " " .. ranks)
      luaunit.assertFalse(data:is_sum())
      data.recv:copy_from(sum)
      luaunit.assertTrue(data:is_sum())
      data:clear()
      luaunit.assertFalse(data:is_sum())
    end
  end
end

function TestPayload.test_one_wrong_element_is_seen()
  local data <close> = payload.all_reduce({ index = 1, count = 4 }, "f16", 1000)
  data.recv:copy_from(data.expected)
  luaunit.assertTrue(data:is_sum())
  data.recv:set(1000, data.recv:get(1000) + 1)
  luaunit.assertFalse(data:is_sum())
  luaunit.assertTrue(data:is_sum(nil, data.expected))
end

function TestPayload.test_neighbours_differ()
  local data <close> = payload.all_reduce({ index = 2, count = 4 }, "f16", 100)
  local values = data.expected:to_table()
  for i = 2, #values do luaunit.assertNotEquals(values[i], values[i - 1]) end
end

function TestPayload.test_closes_its_buffers()
  local data = payload.all_reduce({ index = 0, count = 2 }, "f32", 4)
  data:close()
  data:close()
  luaunit.assertErrorMsgContains("closed", data.is_sum, data)
end
