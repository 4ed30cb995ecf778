local luaunit = require("luaunit")
local measure = require("nclua.measure")

TestMeasure = {}

function TestMeasure.test_sizes()
  luaunit.assertEquals(measure.sizes(4, 64, 4), { 4, 16, 64 })
  luaunit.assertEquals(measure.sizes(4, 63, 4), { 4, 16 })
  luaunit.assertEquals(measure.sizes(4, 3, 2), {})
end

function TestMeasure.test_bandwidth_as_nccl_tests_counts_it()
  -- 1 GiB in 3274 us on 2 ranks is 328 GB/s, as nccl-tests prints for two H200s.
  local algbw, busbw = measure.all_reduce_bandwidth(1 << 30, 3274, 2)
  luaunit.assertAlmostEquals(algbw, 327.96, 0.01)
  luaunit.assertEquals(busbw, algbw)
  algbw, busbw = measure.all_reduce_bandwidth(1000, 1, 4)
  luaunit.assertEquals({ algbw, busbw }, { 1, 1.5 })
  luaunit.assertEquals(select(2, measure.all_reduce_bandwidth(1000, 1, 1)), 0)
end

function TestMeasure.test_host_time()
  local us, result = measure.host_us(function() return "done" end)
  luaunit.assertEquals(result, "done")
  luaunit.assertTrue(us >= 0 and us < 1e6)
end

function TestMeasure.test_largest_depends_on_the_backend()
  luaunit.assertTrue(measure.largest("cpu") < measure.largest("cuda"))
  luaunit.assertError(measure.largest, "tpu")
end
